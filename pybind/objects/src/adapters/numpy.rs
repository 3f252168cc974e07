//! `numpy`'s arrays: each owns a block or is a view of its base.
//!
//! Its C interface fixes where the fields of an array lie, from numpy 1 on. They are read from
//! there: the attribute that tells of the bytes, `__array_interface__`, may run Python code.
#![expect(
    unsafe_code,
    reason = "the fields of an array, and what an array of objects holds"
)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::rc::Rc;

use gpumem_heap::{Step, TensorCategory};
use gpumem_model::units::Bytes;
use pyo3::ffi;

use super::arrays::{self, ArrayMemory};
use super::{Adapter, QualifiedName, Sink, Unread, buffers};
use crate::still::{Getter, Object, Section};

/// The host, as people write it.
const HOST: &str = "host";

/// `NPY_ARRAY_OWNDATA`: the block is given back with the array.
const OWNS_DATA: c_int = 4;

/// `PyArrayObject_fields`, as far as it is read.
#[repr(C)]
struct ArrayFields {
    head: ffi::PyObject,
    data: *mut c_void,
    n_dimensions: c_int,
    dimensions: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    dtype: *mut ffi::PyObject,
    flags: c_int,
}

/// Looks at the arrays of the numpy that the user has imported.
pub(super) struct NumPy {
    n_bytes: Getter,
    n_dimensions: Getter,
    base: Getter,
    dtype: Getter,
    /// Whether the fields have the expected offsets, as checked against numpy for the first array.
    is_known: Cell<Option<bool>>,
    dtypes: RefCell<HashMap<usize, Rc<Dtype>>>,
}

/// What the elements of an array are.
struct Dtype {
    name: Option<String>,
    /// References to Python objects.
    is_object: bool,
}

impl NumPy {
    /// None where the user has not imported numpy.
    pub(super) fn of_imported<'s>(section: &'s Section<'s>) -> Option<Self> {
        let numpy = section.modules()?.get("numpy")?.globals()?;
        let class = numpy.get("ndarray")?.as_class()?;
        Some(Self {
            n_bytes: class.getter("nbytes")?,
            n_dimensions: class.getter("ndim")?,
            base: class.getter("base")?,
            dtype: class.getter("dtype")?,
            is_known: Cell::new(None),
            dtypes: RefCell::default(),
        })
    }

    /// None where they lie elsewhere than is known here.
    fn fields<'a>(&self, array: &'a Object<'_>) -> Option<&'a ArrayFields> {
        // SAFETY: an array is at least as large as in numpy 1.0, and lives as long as the section.
        let fields = unsafe { &*array.as_ptr().cast::<ArrayFields>() };
        let is_known = self.is_known.get();
        let is_known = is_known.unwrap_or_else(|| self.agrees(array, fields).is_some());
        self.is_known.set(Some(is_known));
        is_known.then_some(fields)
    }

    /// Whether numpy says the same of an array as its fields do.
    fn agrees(&self, array: &Object<'_>, fields: &ArrayFields) -> Option<()> {
        let n_dimensions = self.n_dimensions.get(array)?.number()?;
        let base = self.base.get(array)?;
        let is_base = base.is_none() && fields.base.is_null() || base.as_ptr() == fields.base;
        let is_dtype = self.dtype.get(array)?.as_ptr() == fields.dtype;
        let is_same = u64::try_from(fields.n_dimensions) == Ok(n_dimensions);
        (is_base && is_dtype && is_same).then_some(())
    }

    fn dtype(&self, dtype: &Object<'_>) -> Rc<Dtype> {
        let mut known = self.dtypes.borrow_mut();
        let known = known.entry(dtype.address()).or_insert_with(|| {
            let kind = dtype.read("char").and_then(|kind| kind.text());
            Rc::new(Dtype {
                name: arrays::numpy_dtype(dtype),
                is_object: kind.as_deref() == Some("O"),
            })
        });
        Rc::clone(known)
    }

    fn array(&self, array: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Option<()> {
        let fields = self.fields(array)?;
        let n_bytes = Bytes::new(self.n_bytes.get(array)?.number()?);
        let section = array.section();
        // SAFETY: an array has a dtype, which it keeps.
        let dtype = self.dtype(&unsafe { section.borrowed(fields.dtype) });
        let is_small = n_bytes < buffers::SMALLEST;
        if is_small && fields.base.is_null() && !dtype.is_object {
            return Some(());
        }
        arrays::describe(
            dtype.name.clone(),
            shape(fields),
            TensorCategory::Array,
            sink,
        );
        if let Some(base) = NonNull::new(fields.base) {
            // SAFETY: the array keeps its base.
            let base = unsafe { section.borrowed(base.as_ptr()) };
            show(array, fields, n_bytes, &base, &dtype, sink);
        } else if fields.flags & OWNS_DATA != 0 {
            if !is_small {
                hold(fields, n_bytes, array.address(), &dtype, sink);
            }
            if dtype.is_object {
                elements(fields, n_bytes, sink);
            }
        }
        Some(())
    }
}

impl Adapter for NumPy {
    fn claims(&self, class: &QualifiedName) -> bool {
        class.module == "numpy" && class.name == "ndarray"
    }

    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        let array = self.array(object, sink);
        array.ok_or(Unread("the memory of a NumPy array"))
    }
}

/// The lengths of an array.
fn shape(fields: &ArrayFields) -> Option<Vec<u64>> {
    let n = usize::try_from(fields.n_dimensions).ok()?;
    if n == 0 || fields.dimensions.is_null() {
        return Some(Vec::new());
    }
    // SAFETY: an array has as many lengths as dimensions.
    let lengths = unsafe { std::slice::from_raw_parts(fields.dimensions, n) };
    let lengths = lengths.iter().map(|length| u64::try_from(*length).ok());
    lengths.collect()
}

/// Tells of an array that shows what another object has. C++ code hides behind a capsule what it
/// made, and nobody can tell how large that is: as large as what shows it.
fn show(
    array: &Object<'_>,
    fields: &ArrayFields,
    n_bytes: Bytes,
    base: &Object<'_>,
    dtype: &Dtype,
    sink: &mut Sink<'_, '_, '_>,
) {
    if base.is_capsule() {
        hold(fields, n_bytes, array.address(), dtype, sink);
    } else {
        sink.object(sink.own(), base, Step::attribute("base"));
    }
}

fn hold(
    fields: &ArrayFields,
    n_bytes: Bytes,
    owner: usize,
    dtype: &Dtype,
    sink: &mut Sink<'_, '_, '_>,
) {
    let block = ArrayMemory {
        device: HOST.to_owned(),
        address: fields.data as usize,
        n_bytes,
        owner,
        is_data: !dtype.is_object,
    };
    arrays::hold(&block, sink);
}

/// The objects in an array of objects that has its own block: numpy does not tell Python's garbage
/// collector of them.
fn elements(fields: &ArrayFields, n_bytes: Bytes, sink: &mut Sink<'_, '_, '_>) {
    let n = n_bytes.get() as usize / size_of::<*mut ffi::PyObject>();
    let first = fields.data.cast::<*mut ffi::PyObject>();
    // SAFETY: a block of `n` references, each to a live object or null. They are contiguous in any
    // order of the dimensions.
    let items = (0..n).map(|idx| unsafe { first.add(idx).read_unaligned() });
    sink.items(items);
}
