//! The catalogue of known leaks, by library.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

/// All entries.
pub const CATALOGUE: &[&CatalogueEntry] = &[
    &ACCELERATE_PREPARED_MODELS,
    &ANYWIDGET_FILE_CONTENTS,
    &ASTROPY_READ_IMAGES,
    &DIFFUSERS_ADAPTERS,
    &GPYTORCH_CACHES,
    &GYMNASIUM_FRAMES,
    &HYPEROPT_TRIALS,
    &IGNITE_EPOCH_METRIC,
    &IPYWIDGETS_REGISTRY,
    &JAX_COMPILED,
    &KERAS_HISTORY,
    &LIGHTNING_TRAINER_KEEPS_MODEL,
    &LIGHTNING_TRAINER_KEEPS_PREDICTIONS,
    &LIGHTNING_TRAINER_KEEPS_DATA,
    &MATPLOTLIB_OPEN_FIGURES,
    &MATPLOTLIB_ARTISTS,
    &MATPLOTLIB_ANIMATIONS,
    &MOCK_CALLS,
    &NIBABEL_CACHED_IMAGES,
    &OPACUS_ACTIVATIONS,
    &OPACUS_GRAD_SAMPLES,
    &OPTUNA_USER_ATTRIBUTES,
    &PEFT_ADAPTERS,
    &PYDICOM_PIXEL_ARRAYS,
    &PYRO_PARAM_STORE,
    &SKLEARN_NEIGHBORS,
    &SNNTORCH_INSTANCES,
    &STATSMODELS_RESULTS_KEEP_DATA,
    &TENSORFLOW_RETRACED,
    &TORCH_LBFGS,
    &TORCH_CUFFT_PLANS,
    &TORCHEVAL_LIST_STATES,
    &TORCHMETRICS_LIST_STATES,
    &TRANSFORMERS_TRAINER_KEEPS_MODEL,
    &TRANSFORMERS_OUTPUTS_KEEP_CACHE,
    &TRANSFORMERS_ADAPTERS,
    &TRANSFORMERS_HIDDEN_STATES,
    &TRANSFORMERS_SCORES,
    &TRIMESH_CACHE,
    &XARRAY_CACHED_VARIABLES,
];

pub(super) const ACCELERATE_PREPARED_MODELS: CatalogueEntry = CatalogueEntry {
    id: "accelerate-prepared-models",
    library: "accelerate",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["accelerate.accelerator.Accelerator"],
        paths: &[
            "._models[*]",
            "._optimizers[*]",
            "._schedulers[*]",
            "._dataloaders[*]",
        ],
    },
    title: "accelerate keeps prepared models",
    cause: "`prepare()` registers each model and optimizer with the accelerator until `free_memory()` is called",
    cure: KnownCure::Call("{object}.free_memory()"),
    link: "https://github.com/huggingface/accelerate/issues/84",
};

const ANYWIDGET_FILE_CONTENTS: CatalogueEntry = CatalogueEntry {
    id: "anywidget-file-contents",
    library: "anywidget",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &[
            "anywidget._file_contents.FileContents",
            "anywidget._file_contents.VirtualFileContents",
        ],
        paths: &[".changed.*"],
    },
    title: "anywidget keeps every widget whose script is a file",
    cause: "each widget connects a function of its own to the file's `changed` signal, also when it is closed",
    cure: KnownCure::Change("give `_esm` the text, `path.read_text()`, and not the path"),
    link: "https://github.com/manzt/anywidget/issues/929",
};

const ASTROPY_READ_IMAGES: CatalogueEntry = CatalogueEntry {
    id: "astropy-read-images",
    library: "astropy",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["astropy.io.fits.hdu.image._ImageBaseHDU"],
        paths: &[".data"],
    },
    title: "astropy keeps the data of each image that was read",
    cause: "`hdu.data` stays in the HDU, also when the file is closed",
    cure: KnownCure::Change("run `del hdu.data` when you have what you need"),
    link: "https://github.com/astropy/astropy/issues/9096",
};

const DIFFUSERS_ADAPTERS: CatalogueEntry = CatalogueEntry {
    id: "diffusers-adapters",
    library: "diffusers",
    versions: Versions::since("0.22"),
    pattern: LeakPattern::Within {
        classes: &[
            "diffusers.models.modeling_utils.ModelMixin",
            "diffusers.pipelines.pipeline_utils.DiffusionPipeline",
        ],
        paths: &["**.lora_A.*", "**.lora_B.*"],
    },
    title: "diffusers keeps every adapter until it is deleted",
    cause: "`add_adapter()` and `load_lora_weights()` put new weights beside those of the adapters before",
    cure: KnownCure::Change(
        "call `delete_adapters(name)` for each adapter that you no longer need",
    ),
    link: "https://github.com/huggingface/diffusers/issues/9325",
};

const GPYTORCH_CACHES: CatalogueEntry = CatalogueEntry {
    id: "gpytorch-prediction-caches",
    library: "gpytorch",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["gpytorch.models.exact_gp.ExactGP"],
        paths: &[".prediction_strategy"],
    },
    title: "GPyTorch keeps what a model computed to predict",
    cause: "the first prediction stores the covariance of all training data in the model, until it is trained again",
    cure: KnownCure::Change("call `model.train()` on a model before you keep it"),
    link: "https://github.com/cornellius-gp/gpytorch/issues/550",
};

const GYMNASIUM_FRAMES: CatalogueEntry = CatalogueEntry {
    id: "gymnasium-render-frames",
    library: "gymnasium",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["gymnasium.wrappers.rendering.RenderCollection"],
        paths: &[".frame_list[*]"],
    },
    title: "gymnasium keeps each frame until it is taken",
    cause: "an environment that renders lists adds a frame in each step, until `render()` or `reset()`",
    cure: KnownCure::Call("{object}.render()"),
    link: "https://github.com/openai/gym/pull/3016",
};

const HYPEROPT_TRIALS: CatalogueEntry = CatalogueEntry {
    id: "hyperopt-trials-keep-results",
    library: "hyperopt",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["hyperopt.base.Trials"],
        paths: &["._dynamic_trials[*]['result'][*]"],
    },
    title: "hyperopt keeps all that the objective returns",
    cause: "the trials have the result of each evaluation, with a model in it too",
    cure: KnownCure::Change("save the model to a file, and return its path"),
    link: "https://github.com/hyperopt/hyperopt/issues/267",
};

const IGNITE_EPOCH_METRIC: CatalogueEntry = CatalogueEntry {
    id: "ignite-epoch-metric",
    library: "pytorch-ignite",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["ignite.metrics.epoch_metric.EpochMetric"],
        paths: &["._predictions[*]", "._targets[*]"],
    },
    title: "an EpochMetric keeps every batch until it is reset",
    cause: "without an engine nobody resets it after an epoch",
    cure: KnownCure::Call("{object}.reset()"),
    link: "https://github.com/pytorch/ignite/issues/309",
};

const IPYWIDGETS_REGISTRY: CatalogueEntry = CatalogueEntry {
    id: "ipywidgets-registry",
    library: "ipywidgets",
    versions: Versions::ALL,
    pattern: LeakPattern::Global {
        path: "ipywidgets.widgets.widget._instances",
    },
    title: "ipywidgets keeps every widget until it is closed",
    cause: "a global registry has each widget, with what its callbacks refer to",
    cure: KnownCure::Change(
        "call `.close()` on a widget before you replace it; `ipywidgets.Widget.close_all()` closes all",
    ),
    link: "https://github.com/jupyter-widgets/ipywidgets/issues/1345",
};

const JAX_COMPILED: CatalogueEntry = CatalogueEntry {
    id: "jax-compiled-shapes",
    library: "jax",
    versions: Versions::ALL,
    pattern: LeakPattern::Compiled { by: "jax.jit" },
    title: "JAX keeps each function that it compiled",
    cause: "a new shape, type or static argument compiles the function once more, and the program stays",
    cure: KnownCure::Call("import jax; jax.clear_caches()"),
    link: "https://github.com/jax-ml/jax/issues/10828",
};

const KERAS_HISTORY: CatalogueEntry = CatalogueEntry {
    id: "keras-history-keeps-model",
    library: "keras",
    versions: Versions::since("3.0"),
    pattern: LeakPattern::Each {
        classes: &["keras.src.callbacks.history.History"],
        paths: &["._model"],
    },
    title: "Keras' History keeps its model",
    cause: "`fit()` returns a callback, which refers to the model that it was called for",
    cure: KnownCure::Change("keep the numbers, `model.fit(…).history`"),
    link: "https://github.com/keras-team/keras/issues/646",
};

/// It is installed under two names.
const LIGHTNING_TRAINERS: &[&str] = &[
    "lightning.pytorch.trainer.trainer.Trainer",
    "pytorch_lightning.trainer.trainer.Trainer",
];

const LIGHTNING_TRAINER_KEEPS_MODEL: CatalogueEntry = CatalogueEntry {
    id: "lightning-trainer-keeps-model",
    library: "lightning",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: LIGHTNING_TRAINERS,
        paths: &[".strategy.*", "**._datahook_selector.model"],
    },
    title: "Lightning's Trainer keeps the model that it ran last",
    cause: "after `fit()` the Trainer still refers to the model and its optimizers",
    cure: KnownCure::Call("del {name}"),
    link: "https://github.com/Lightning-AI/pytorch-lightning/issues/4385",
};

const LIGHTNING_TRAINER_KEEPS_PREDICTIONS: CatalogueEntry = CatalogueEntry {
    id: "lightning-trainer-keeps-predictions",
    library: "lightning",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: LIGHTNING_TRAINERS,
        paths: &[".predict_loop._predictions[*]"],
    },
    title: "Lightning's Trainer keeps the last predictions",
    cause: "`predict()` collects all predictions in the Trainer, which keeps them until its next `predict()`",
    cure: KnownCure::Change(
        "call `predict(…, return_predictions=False)` and write each batch in a `BasePredictionWriter`",
    ),
    link: "https://github.com/Lightning-AI/pytorch-lightning/issues/6508",
};

const LIGHTNING_TRAINER_KEEPS_DATA: CatalogueEntry = CatalogueEntry {
    id: "lightning-trainer-keeps-data",
    library: "lightning",
    versions: Versions::since("2.0"),
    pattern: LeakPattern::Within {
        classes: LIGHTNING_TRAINERS,
        paths: &["**._data_source.*", "**._combined_loader.*"],
    },
    title: "Lightning's Trainer keeps its data loaders",
    cause: "after `fit()` the loops of the Trainer still refer to the data loaders, and those to their data",
    cure: KnownCure::Call("del {name}"),
    link: "https://github.com/Lightning-AI/pytorch-lightning/issues/18289",
};

const MATPLOTLIB_OPEN_FIGURES: CatalogueEntry = CatalogueEntry {
    id: "matplotlib-open-figures",
    library: "matplotlib",
    versions: Versions::ALL,
    pattern: LeakPattern::Global {
        path: "matplotlib._pylab_helpers.Gcf.figs",
    },
    title: "pyplot keeps every figure until it is closed",
    cause: "`plt.figure()` and `plt.subplots()` register each figure with pyplot",
    cure: KnownCure::Found,
    link: "https://github.com/matplotlib/matplotlib/issues/8519",
};

const MATPLOTLIB_ARTISTS: CatalogueEntry = CatalogueEntry {
    id: "matplotlib-axes-keep-artists",
    library: "matplotlib",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["matplotlib.axes._base._AxesBase"],
        paths: &["._children[*]"],
    },
    title: "axes keep all that was drawn into them",
    cause: "`plot()`, `imshow()` and others add a line or an image, with its data, to what is there",
    cure: KnownCure::Call("{object}.clear()"),
    link: "https://github.com/matplotlib/matplotlib/issues/29685",
};

const MATPLOTLIB_ANIMATIONS: CatalogueEntry = CatalogueEntry {
    id: "matplotlib-animation-frames",
    library: "matplotlib",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["matplotlib.animation.FuncAnimation"],
        paths: &["._save_seq[*]"],
    },
    title: "an animation keeps the data of its frames",
    cause: "`FuncAnimation` caches what its `frames` give, to save them again",
    cure: KnownCure::Change("write `FuncAnimation(…, cache_frame_data=False)`"),
    link: "https://github.com/matplotlib/matplotlib/issues/8528",
};

const MOCK_CALLS: CatalogueEntry = CatalogueEntry {
    id: "mock-keeps-calls",
    library: "unittest.mock",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["unittest.mock.NonCallableMock"],
        paths: &[
            "._mock_mock_calls[*]",
            "._mock_call_args_list[*]",
            "._mock_method_calls[*]",
        ],
    },
    title: "a mock keeps the arguments of every call",
    cause: "`mock_calls` and `call_args_list` refer to all arguments until the mock is reset",
    cure: KnownCure::Call("{object}.reset_mock()"),
    link: "https://github.com/python/cpython/issues/106823",
};

const NIBABEL_CACHED_IMAGES: CatalogueEntry = CatalogueEntry {
    id: "nibabel-cached-images",
    library: "nibabel",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["nibabel.dataobj_images.DataobjImage"],
        paths: &["._fdata_cache"],
    },
    title: "nibabel keeps the data of each image that was read",
    cause: "`get_fdata()` keeps its array in the image",
    cure: KnownCure::Change(
        "call `image.uncache()` when you have what you need, or `image.get_fdata(caching='unchanged')`",
    ),
    link: "https://github.com/nipy/nibabel/issues/467",
};

const OPACUS_ACTIVATIONS: CatalogueEntry = CatalogueEntry {
    id: "opacus-activations",
    library: "opacus",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["opacus.grad_sample.grad_sample_module.GradSampleModule"],
        paths: &["**.activations[*]"],
    },
    title: "opacus keeps the activations of every forward pass",
    cause: "in training mode a hook stores the input of each layer until a backward pass takes it",
    cure: KnownCure::Call("{object}.eval()"),
    link: "https://github.com/meta-pytorch/opacus/issues/176",
};

const OPACUS_GRAD_SAMPLES: CatalogueEntry = CatalogueEntry {
    id: "opacus-grad-samples",
    library: "opacus",
    versions: Versions::since("1.0"),
    pattern: LeakPattern::Within {
        classes: &["opacus.grad_sample.grad_sample_module.GradSampleModule"],
        paths: &["**.grad_sample[*]"],
    },
    title: "opacus keeps the per-sample gradients of every batch",
    cause: "each backward pass appends a gradient for each sample, until the gradients are set to zero",
    cure: KnownCure::Call("{object}.zero_grad()"),
    link: "https://github.com/meta-pytorch/opacus/issues/413",
};

const OPTUNA_USER_ATTRIBUTES: CatalogueEntry = CatalogueEntry {
    id: "optuna-user-attributes",
    library: "optuna",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["optuna.study.study.Study"],
        paths: &["**._user_attrs[*]", "**.user_attrs[*]"],
    },
    title: "Optuna keeps what its trials store as attributes",
    cause: "a study in memory keeps the user attributes of all trials",
    cure: KnownCure::Change(
        "save the model to a file, and store its path with `trial.set_user_attr()`",
    ),
    link: "https://github.com/optuna/optuna/issues/5183",
};

const PEFT_ADAPTERS: CatalogueEntry = CatalogueEntry {
    id: "peft-adapters",
    library: "peft",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["peft.peft_model.PeftModel"],
        paths: &["**.lora_A.*", "**.lora_B.*"],
    },
    title: "peft keeps every adapter until it is deleted",
    cause: "`add_adapter()` and `load_adapter()` put new weights beside those of the adapters before",
    cure: KnownCure::Change("call `delete_adapter(name)` for each adapter that you no longer need"),
    link: "https://github.com/huggingface/peft/issues/738",
};

const PYDICOM_PIXEL_ARRAYS: CatalogueEntry = CatalogueEntry {
    id: "pydicom-pixel-arrays",
    library: "pydicom",
    versions: Versions::since("3.0"),
    pattern: LeakPattern::Each {
        classes: &["pydicom.dataset.Dataset"],
        paths: &["._pixel_array"],
    },
    title: "pydicom keeps the array of each data set that was read",
    cause: "`pixel_array` keeps its array in the data set",
    cure: KnownCure::Change("read `pydicom.pixels.pixel_array(dataset)`, which keeps nothing"),
    link: "https://github.com/pydicom/pydicom/issues/525",
};

const PYRO_PARAM_STORE: CatalogueEntry = CatalogueEntry {
    id: "pyro-param-store",
    library: "pyro-ppl",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["pyro.params.param_store.ParamStoreDict"],
        paths: &["._params[*]"],
    },
    title: "Pyro keeps every parameter by its name",
    cause: "the global parameter store keeps a parameter until it is cleared, whatever model it is of",
    cure: KnownCure::Call("pyro.clear_param_store()"),
    link: "https://github.com/pyro-ppl/pyro/issues/3094",
};

const SKLEARN_NEIGHBORS: CatalogueEntry = CatalogueEntry {
    id: "sklearn-neighbors-keep-data",
    library: "scikit-learn",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["sklearn.neighbors._base.NeighborsBase"],
        paths: &["._fit_X"],
    },
    title: "models of nearest neighbors keep their training data",
    cause: "a fitted model refers to the data that it searches",
    cure: KnownCure::Change("keep the scores of the models and not the models"),
    link: "https://scikit-learn.org/stable/modules/neighbors.html",
};

const SNNTORCH_INSTANCES: CatalogueEntry = CatalogueEntry {
    id: "snntorch-instances",
    library: "snntorch",
    versions: Versions::ALL,
    pattern: LeakPattern::Global {
        path: "snntorch._neurons.neurons.SpikingNeuron.instances",
    },
    title: "snnTorch keeps every neuron that was made",
    cause: "each neuron is appended to a list of its class, `SpikingNeuron.instances`",
    cure: KnownCure::Call("import snntorch; snntorch._neurons.SpikingNeuron.instances.clear()"),
    link: "https://github.com/jeshraghian/snntorch/issues/328",
};

const STATSMODELS_RESULTS_KEEP_DATA: CatalogueEntry = CatalogueEntry {
    id: "statsmodels-results-keep-data",
    library: "statsmodels",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["statsmodels.base.model.Results"],
        paths: &["**.*"],
    },
    title: "results of statsmodels keep their data",
    cause: "each result refers to its model, and that to the data it was fitted to",
    cure: KnownCure::Change("call `.remove_data()` on a result before you keep it"),
    link: "https://github.com/statsmodels/statsmodels/issues/176",
};

const TENSORFLOW_RETRACED: CatalogueEntry = CatalogueEntry {
    id: "tensorflow-retraced-functions",
    library: "tensorflow",
    versions: Versions::ALL,
    pattern: LeakPattern::Compiled { by: "tf.function" },
    title: "TensorFlow keeps a graph for each new argument",
    cause: "a `tf.function` is traced once more for each Python number and each shape, and the graph stays",
    cure: KnownCure::Change(
        "call it with tensors, `tf.constant(n)`, or give it an `input_signature`",
    ),
    link: "https://www.tensorflow.org/guide/function",
};

const TORCH_LBFGS: CatalogueEntry = CatalogueEntry {
    id: "torch-lbfgs-history",
    library: "torch",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["torch.optim.lbfgs.LBFGS"],
        paths: &[".state[*]"],
    },
    title: "LBFGS keeps its last 100 steps",
    cause: "each of them takes twice the memory of the parameters",
    cure: KnownCure::Change("remember fewer, `torch.optim.LBFGS(…, history_size=10)`"),
    link: "https://docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html",
};

const TORCH_CUFFT_PLANS: CatalogueEntry = CatalogueEntry {
    id: "torch-cufft-plans",
    library: "torch",
    versions: Versions::ALL,
    pattern: LeakPattern::Outside {
        calls: "torch.fft.",
    },
    title: "torch keeps a plan for each shape of an FFT",
    cause: "cuFFT makes a plan for each new shape, and a cache keeps up to 4096 of them",
    cure: KnownCure::Call("import torch; torch.backends.cuda.cufft_plan_cache.clear()"),
    link: "https://docs.pytorch.org/docs/stable/notes/cuda.html#cufft-plan-cache",
};

const TORCHEVAL_LIST_STATES: CatalogueEntry = CatalogueEntry {
    id: "torcheval-list-states",
    library: "torcheval",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["torcheval.metrics.metric.Metric"],
        paths: &[".*[*]"],
    },
    title: "torcheval keeps every batch until the metric is reset",
    cause: "a metric that needs all values appends those of each `update()`",
    cure: KnownCure::Call("{object}.reset()"),
    link: "https://github.com/meta-pytorch/torcheval/pull/38",
};

const TORCHMETRICS_LIST_STATES: CatalogueEntry = CatalogueEntry {
    id: "torchmetrics-list-states",
    library: "torchmetrics",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["torchmetrics.metric.Metric"],
        paths: &[".*[*]"],
    },
    title: "torchmetrics keeps every batch until the metric is reset",
    cause: "a metric with list states appends the predictions and targets of each `update()`",
    cure: KnownCure::Call("{object}.reset()"),
    link: "https://github.com/Lightning-AI/torchmetrics/issues/3294",
};

const TRANSFORMERS_TRAINER_KEEPS_MODEL: CatalogueEntry = CatalogueEntry {
    id: "transformers-trainer-keeps-model",
    library: "transformers",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["transformers.trainer.Trainer"],
        paths: &[
            ".model",
            ".model_wrapped",
            ".optimizer",
            ".callback_handler.*",
            ".accelerator.*",
        ],
    },
    title: "transformers' Trainer keeps its model",
    cause: "the Trainer refers to the model, its optimizer and its accelerator as long as the Trainer lives",
    cure: KnownCure::Call("del {name}"),
    link: "https://github.com/huggingface/transformers/issues/26571",
};

const TRANSFORMERS_OUTPUTS_KEEP_CACHE: CatalogueEntry = CatalogueEntry {
    id: "transformers-outputs-keep-cache",
    library: "transformers",
    versions: Versions::since("4.36"),
    pattern: LeakPattern::Each {
        classes: &["transformers.cache_utils.Cache"],
        paths: &[".layers[*]"],
    },
    title: "outputs of transformers keep the KV cache",
    cause: "a model with `use_cache` returns the keys and values of all layers in each output",
    cure: KnownCure::Change(
        "keep what you need of an output, as `output.logits`, or call the model with `use_cache=False`",
    ),
    link: "https://github.com/huggingface/transformers/issues/15426",
};

const TRANSFORMERS_ADAPTERS: CatalogueEntry = CatalogueEntry {
    id: "transformers-adapters",
    library: "transformers",
    versions: Versions::since("4.33"),
    pattern: LeakPattern::Within {
        classes: &["transformers.modeling_utils.PreTrainedModel"],
        paths: &["**.lora_A.*", "**.lora_B.*"],
    },
    title: "transformers keeps every adapter until it is deleted",
    cause: "`add_adapter()` and `load_adapter()` put new weights beside those of the adapters before",
    cure: KnownCure::Change("call `delete_adapter(name)` for each adapter that you no longer need"),
    link: "https://github.com/huggingface/transformers/pull/34650",
};

const TRANSFORMERS_HIDDEN_STATES: CatalogueEntry = CatalogueEntry {
    id: "transformers-outputs-keep-hidden-states",
    library: "transformers",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["transformers.utils.generic.ModelOutput"],
        paths: &["['hidden_states'][*]", "['attentions'][*]"],
    },
    title: "outputs of transformers keep the states of all layers",
    cause: "with `output_hidden_states` or `output_attentions` each output has a tensor of every layer",
    cure: KnownCure::Change("keep the layer that you need, as `output.hidden_states[-1]`"),
    link: "https://github.com/huggingface/transformers/pull/43213",
};

const TRANSFORMERS_SCORES: CatalogueEntry = CatalogueEntry {
    id: "transformers-generate-keeps-scores",
    library: "transformers",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["transformers.utils.generic.ModelOutput"],
        paths: &["['scores'][*]", "['logits'][*]"],
    },
    title: "generated outputs keep scores of the whole vocabulary",
    cause: "with `output_scores` or `output_logits` each new token has a score for every token that there is",
    cure: KnownCure::Change("keep `output.sequences`, and of the scores what you need"),
    link: "https://huggingface.co/docs/transformers/internal/generation_utils",
};

const TRIMESH_CACHE: CatalogueEntry = CatalogueEntry {
    id: "trimesh-cache",
    library: "trimesh",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["trimesh.base.Trimesh"],
        paths: &["._cache.cache[*]"],
    },
    title: "trimesh keeps all that was computed of a mesh",
    cause: "normals, triangles and adjacency stay in the cache of the mesh",
    cure: KnownCure::Change(
        "keep what you computed and not the mesh, or call `mesh._cache.clear()`",
    ),
    link: "https://github.com/mikedh/trimesh/issues/815",
};

const XARRAY_CACHED_VARIABLES: CatalogueEntry = CatalogueEntry {
    id: "xarray-cached-variables",
    library: "xarray",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["xarray.core.indexing.MemoryCachedArray"],
        paths: &[".*"],
    },
    title: "xarray keeps each variable that was read",
    cause: "`open_dataset()` keeps the values of a variable once they were read",
    cure: KnownCure::Change("open the file with `cache=False`"),
    link: "https://github.com/pydata/xarray/issues/2186",
};
