//! Tables for data frames, through Arrow's C stream interface.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, LargeStringArray, RecordBatch, RecordBatchIterator,
    RecordBatchOptions,
};
use arrow_schema::{ArrowError, Field, Schema};
use gpumem_report::table::{self, Values};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// Rows with one type for each column, which libraries for data frames read.
#[pyclass(frozen, name = "Table", module = "gpumem.types")]
pub(crate) struct PyTable {
    inner: table::Table,
}

impl PyTable {
    pub(crate) fn new(inner: table::Table) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl PyTable {
    /// The table as a stream of one batch; the columns keep their types.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Another schema is a wish, which need not be met.
        let _ = requested_schema;
        let batch = batch(&self.inner).map_err(|it| PyRuntimeError::new_err(it.to_string()))?;
        let schema = batch.schema();
        let batches = RecordBatchIterator::new([Ok(batch)], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Each column's values by its name.
    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, values) in &self.inner.columns {
            match values {
                Values::Integers(values) => columns.set_item(name, values)?,
                Values::Texts(values) => columns.set_item(name, values)?,
                Values::Flags(values) => columns.set_item(name, values)?,
            }
        }
        Ok(columns)
    }

    fn __len__(&self) -> usize {
        self.inner.n_rows
    }

    fn __repr__(&self) -> String {
        let (n_rows, n_columns) = (self.inner.n_rows, self.inner.columns.len());
        format!("<Table: {n_rows} rows of {n_columns} columns>")
    }
}

fn batch(table: &table::Table) -> Result<RecordBatch, ArrowError> {
    let columns = table.columns.iter();
    let columns = columns.map(|(name, values)| (*name, column(values)));
    let (fields, columns): (Vec<_>, Vec<_>) = columns
        .map(|(name, it)| (Field::new(name, it.data_type().clone(), true), it))
        .unzip();
    let n_rows = RecordBatchOptions::new().with_row_count(Some(table.n_rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &n_rows)
}

fn column(values: &Values) -> ArrayRef {
    match values {
        Values::Integers(values) => Arc::new(Int64Array::from_iter(values)),
        Values::Texts(values) => Arc::new(LargeStringArray::from_iter(values)),
        Values::Flags(values) => Arc::new(BooleanArray::from_iter(values)),
    }
}
