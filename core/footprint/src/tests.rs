use super::*;

const N: u64 = 1000;

fn parameter(shape: &[u64], element_bytes: u64) -> Parameter {
    Parameter {
        tensor: ModelTensor {
            device: "cuda:0".to_owned(),
            dtype: if element_bytes == 2 {
                "bfloat16"
            } else {
                "float32"
            }
            .to_owned(),
            shape: shape.to_vec(),
            element_bytes,
        },
        requires_grad: true,
        options: Some(Options::default()),
    }
}

fn model(optimizer: &str, parameters: Vec<Parameter>) -> TrainedModel {
    TrainedModel {
        parameters,
        optimizer: Some(vec![optimizer.to_owned(), "builtins.object".to_owned()]),
        ..TrainedModel::default()
    }
}

/// What the optimizer should keep on the device for a parameter of 1000 × 1000.
#[track_caller]
fn check_with(optimizer: &str, options: Options, element_bytes: u64, expected: Option<u64>) {
    let mut weights = parameter(&[N, N], element_bytes);
    weights.options = Some(options);
    let footprint = Footprint::for_model(&model(optimizer, vec![weights]));
    let mut rows = footprint.on("cuda:0");
    let state = rows.find(|row| row.part == FootprintPart::OptimizerState);
    let n_bytes = state.map_or(Some(Bytes::ZERO), |row| row.expected);
    assert_eq!(n_bytes.map(Bytes::get), expected, "{optimizer}");
}

#[track_caller]
fn check(optimizer: &str, expected: u64) {
    check_with(optimizer, Options::default(), 4, Some(expected));
}

#[test]
fn each_optimizer_keeps_what_its_code_allocates() {
    let like = 4 * N * N;
    check("torch.optim.sgd.SGD", 0);
    check("torch.optim.adam.Adam", 2 * like);
    check("torch.optim.adamw.AdamW", 2 * like);
    check("torch.optim.nadam.NAdam", 2 * like);
    check("torch.optim.adamax.Adamax", 2 * like);
    check("torch.optim.rmsprop.RMSprop", like);
    check("torch.optim.adagrad.Adagrad", like);
    check("torch.optim.adadelta.Adadelta", 2 * like);
    check("torch.optim.rprop.Rprop", 2 * like);
    check("torch.optim.asgd.ASGD", like + 12);
    check("torch.optim._adafactor.Adafactor", 4 * (N + N));
    check("torch.optim._muon.Muon", like);
    check(
        "bitsandbytes.optim.adamw.PagedAdamW8bit",
        2 * (N * N + 4 * 3907),
    );
    check("bitsandbytes.optim.lion.Lion", like);
}

#[test]
fn options_and_element_types_count() {
    let sgd = "torch.optim.sgd.SGD";
    let adam = "torch.optim.adam.Adam";
    let momentum = Options {
        has_momentum: true,
        ..Options::default()
    };
    check_with(sgd, momentum.clone(), 4, Some(4 * N * N));
    check_with(sgd, momentum, 2, Some(2 * N * N));
    let amsgrad = Options {
        is_amsgrad: true,
        has_step_on_device: true,
        ..Options::default()
    };
    check_with(adam, amsgrad, 2, Some(6 * N * N + 4));
    let lbfgs = Options {
        history_size: 10,
        ..Options::default()
    };
    check_with("torch.optim.lbfgs.LBFGS", lbfgs, 4, Some(22 * 4 * N * N));
    check_with(
        "bitsandbytes.optim.adam.Adam",
        Options::default(),
        2,
        Some(8 * N * N),
    );
}

#[test]
fn what_is_not_known_is_not_guessed() {
    check_with("mine.Lookahead", Options::default(), 4, None);
    let mine = ["mine.Adam", "torch.optim.adam.Adam"].map(str::to_owned);
    let mut inherited = model("", vec![parameter(&[N], 4)]);
    inherited.optimizer = Some(mine.to_vec());
    assert_eq!(
        Footprint::for_model(&inherited).expected("cuda:0"),
        Some(Bytes::new(4 * 4 * N))
    );
}

#[test]
fn a_frozen_parameter_has_no_gradient_and_no_state() {
    let mut frozen = parameter(&[N, N], 2);
    frozen.requires_grad = false;
    let mut left_out = parameter(&[N], 4);
    left_out.options = None;
    let footprint = Footprint::for_model(&model("torch.optim.adam.Adam", vec![frozen, left_out]));
    let parts: Vec<_> = footprint
        .rows
        .iter()
        .map(|row| (row.part, row.expected.map(Bytes::get)))
        .collect();
    assert_eq!(
        parts,
        [
            (FootprintPart::Parameters, Some(2 * N * N + 4 * N)),
            (FootprintPart::Gradients, Some(4 * N)),
        ]
    );
    assert_eq!(
        footprint.rows[1].formula,
        "one like each of 1 of 2 parameters"
    );
}

#[test]
fn the_text_reads_as_a_table() {
    let mut found = model("torch.optim.adamw.AdamW", vec![parameter(&[N, N], 2); 8]);
    found.buffers = vec![parameter(&[N], 4).tensor];
    found.present = [
        (FootprintPart::Parameters, 16_000_000),
        (FootprintPart::Gradients, 16_000_000),
    ]
    .map(|(part, n_bytes)| PresentPart {
        device: "cuda:0".to_owned(),
        part,
        n_bytes: Bytes::new(n_bytes),
    })
    .to_vec();
    let expected = "\
cuda:0           should take    is there
  parameters        15.3 MiB    15.3 MiB   8 of bfloat16 (2 B)
  buffers           3.91 KiB         0 B   1 of float32 (4 B)
  gradients         15.3 MiB    15.3 MiB   one like each parameter
  optimizer         30.5 MiB         0 B   AdamW: exp_avg + exp_avg_sq like each parameter, step of 4 B
  together            61 MiB    30.5 MiB";
    assert_eq!(Footprint::for_model(&found).to_string(), expected);
}
