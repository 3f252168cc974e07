//! Enums whose variants have names: in JSON, in Python, in recordings and in the page.
//!
//! ```
//! use gpumem_model::named;
//!
//! named! {
//!     /// A season.
//!     #[derive(Debug, Clone, Copy, PartialEq)]
//!     pub enum Season {
//!         /// It is warm.
//!         Summer = "summer",
//!         /// It is cold.
//!         Winter = "winter",
//!     }
//! }
//! assert_eq!(Season::ALL, [Season::Summer, Season::Winter]);
//! assert_eq!(Season::from_name("winter"), Some(Season::Winter));
//! assert_eq!(serde_json::to_string(&Season::Summer)?, "\"summer\"");
//! # Ok::<(), serde_json::Error>(())
//! ```

#[doc(hidden)]
pub use serde;

/// An enum that is `Copy`, with the name of each variant: gives it `ALL`, `name`, `from_name` and serde's traits.
/// [The module](mod@crate::named) has an example.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Enum:ident {
            $($(#[$of_variant:meta])* $Variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        $vis enum $Enum {
            $($(#[$of_variant])* $Variant,)+
        }

        impl $Enum {
            /// All of them, in their order.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// Its name.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }

            /// The one of that name.
            $vis fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.name() == name)
            }
        }

        impl $crate::named::serde::Serialize for $Enum {
            fn serialize<S>(&self, serializer: S) -> Result<S::Ok, S::Error>
            where
                S: $crate::named::serde::Serializer,
            {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> $crate::named::serde::Deserialize<'de> for $Enum {
            fn deserialize<D>(deserializer: D) -> Result<Self, D::Error>
            where
                D: $crate::named::serde::Deserializer<'de>,
            {
                use $crate::named::serde::de::Error;

                let name = <String as $crate::named::serde::Deserialize>::deserialize(deserializer)?;
                Self::from_name(&name).ok_or_else(|| Error::unknown_variant(&name, &[$($name),+]))
            }
        }
    };
}
