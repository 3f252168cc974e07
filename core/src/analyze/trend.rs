//! Statistics of trends.
