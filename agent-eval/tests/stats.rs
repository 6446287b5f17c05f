//! The statistics against values that were computed independently: exact fractions, or another library's.
#![expect(clippy::cast_precision_loss, reason = "small counts")]

use agent_eval::{Confusion, stats::*};
use proptest::prelude::*;

/// Equal to the twelfth digit.
#[track_caller]
fn near(actual: impl Into<Option<f64>>, expected: f64) {
    within(actual, expected, 1e-12);
}

#[track_caller]
fn within(actual: impl Into<Option<f64>>, expected: f64, tolerance: f64) {
    let actual = actual.into().expect("a defined value");
    assert!((actual - expected).abs() <= tolerance, "{actual} is not {expected}");
}

#[track_caller]
fn interval(actual: Interval, low: f64, high: f64) {
    near(actual.low, low);
    near(actual.high, high);
}

#[track_caller]
fn all_near(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    actual.iter().zip(expected).for_each(|(actual, expected)| near(*actual, *expected));
}

#[test]
fn pass_at_k_is_unbiased() {
    near(pass_at_k(5, 2, 3), 9.0 / 10.0);
    near(pass_at_k(10, 3, 5), 11.0 / 12.0);
    near(pass_at_k(200, 13, 100), 8_670_143_107.0 / 8_670_841_134.0);
    near(pass_at_k(20, 0, 5), 0.0);
    near(pass_at_k(10, 1, 10), 1.0);
    assert_eq!((pass_at_k(3, 1, 4), pass_at_k(3, 4, 1)), (None, None));
}

#[test]
fn a_suites_pass_at_k_is_the_mean_over_cases() {
    let cases = [(5, 5), (5, 2), (5, 0), (5, 1)];
    for (k, expected) in (1..).zip([2.0 / 5.0, 21.0 / 40.0, 5.0 / 8.0, 7.0 / 10.0, 3.0 / 4.0]) {
        near(resampling_baseline(&cases, k), expected);
    }
    assert_eq!((resampling_baseline(&cases, 6), resampling_baseline(&[], 1)), (None, None));
}

#[test]
fn asking_afresh_has_falling_hazards_too() {
    let by =
        |k: u64| if k == 0 { 0.0 } else { resampling_baseline(&[(5, 5), (5, 2), (5, 0), (5, 1)], k).expect("defined") };
    for (k, expected) in (1..).zip([2.0 / 5.0, 5.0 / 24.0, 4.0 / 19.0, 1.0 / 5.0, 1.0 / 6.0]) {
        near((by(k) - by(k - 1)) / (1.0 - by(k - 1)), expected);
    }
}

#[test]
fn a_checker_is_held_against_the_truth() {
    let at_exit = Confusion { accepted_good: 36, accepted_bad: 4, rejected_good: 2, rejected_bad: 8 };
    near(at_exit.precision(), 0.9);
    near(at_exit.recall(), 0.947_368_421_052_631_5);
    near(at_exit.false_accepts(), 4.0 / 12.0);
    near(at_exit.false_rejects(), 2.0 / 38.0);
    let none = Confusion::default();
    assert_eq!([none.precision(), none.recall(), none.false_accepts(), none.false_rejects()], [None; 4]);
}

#[test]
fn pass_hat_k_is_unbiased() {
    near(pass_hat_k(5, 4, 2), 3.0 / 5.0);
    near(pass_hat_k(8, 6, 4), 3.0 / 14.0);
    near(pass_hat_k(10, 9, 3), 7.0 / 10.0);
    near(pass_hat_k(10, 9, 10), 0.0);
    near(pass_hat_k(4, 4, 4), 1.0);
    assert_eq!(pass_hat_k(3, 3, 4), None);
}

#[test]
fn wilson_intervals() {
    let at_95 = |x, n| wilson(x, n, 0.95).expect("defined");
    interval(at_95(8, 10), 0.490_162_471_536_641_8, 0.943_317_848_545_624_7);
    interval(at_95(0, 20), 0.0, 0.161_125_158_052_819_38);
    interval(at_95(10, 10), 0.722_467_200_137_110_7, 1.0);
    interval(at_95(96, 100), 0.901_629_285_641_120_7, 0.984_336_696_008_452_2);
    interval(at_95(3, 60), 0.017_149_502_164_395_7, 0.137_005_164_763_485_2);
    assert_eq!((wilson(0, 0, 0.95), wilson(2, 1, 0.95), wilson(1, 2, 1.0)), (None, None, None));
}

#[test]
fn clustered_standard_errors() {
    let clusters = |rows: &[&[f64]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
    let se = |rows: &[&[f64]]| clustered_standard_error(&clusters(rows));
    near(se(&[&[1., 1., 1.], &[0., 0., 0.], &[1., 0., 1.]]), 0.293_972_367_896_065_57);
    near(se(&[&[1., 1.], &[0., 0.], &[1., 1.], &[0., 1.]]), 0.239_356_776_939_084_53);
    near(se(&[&[1.], &[0.], &[1.], &[1.]]), 0.25);
    // As if all were independent: too small by far for the first two.
    let apart = |values: &[f64]| clustered_standard_error(&values.iter().map(|value| vec![*value]).collect::<Vec<_>>());
    near(apart(&[1., 1., 1., 0., 0., 0., 1., 0., 1.]), 0.175_682_092_231_576_63);
    near(apart(&[1., 1., 0., 0., 1., 1., 0., 1.]), 0.182_981_263_677_849_95);
    near(apart(&[1., 0., 1., 1.]), 0.25);
    assert_eq!((se(&[&[1., 0.]]), se(&[])), (None, None));
}

#[test]
fn clustering_by_case_is_the_standard_error_of_case_means() {
    let cases = [[1., 1., 1., 1.], [0., 0., 0., 0.], [1., 1., 1., 0.], [0., 0., 1., 0.], [1., 1., 1., 1.]];
    let rows: Vec<Vec<f64>> = cases.iter().map(|case| case.to_vec()).collect();
    let means: Vec<Vec<f64>> = cases.iter().map(|case| vec![case.iter().sum::<f64>() / 4.0]).collect();
    near(clustered_standard_error(&rows), 0.203_100_960_115_899);
    near(clustered_standard_error(&means), 0.203_100_960_115_899);
}

#[test]
fn exact_bootstraps() {
    let exact = |values: &[f64], confidence| bootstrap_exact(values, confidence).expect("defined");
    near(exact(&[0., 0., 1.], 0.95).standard_error, (2.0_f64 / 27.0).sqrt());
    interval(exact(&[0., 0., 1.], 0.95).interval, 0.0, 1.0);
    interval(exact(&[0., 0., 1.], 0.90).interval, 0.0, 2.0 / 3.0);
    near(exact(&[0., 1., 1., 1.], 0.95).standard_error, (3.0_f64 / 64.0).sqrt());
    interval(exact(&[0., 1., 1., 1.], 0.95).interval, 0.25, 1.0);
    interval(exact(&[0., 1., 1., 1.], 0.90).interval, 0.25, 1.0);
    near(exact(&[-1., 0., 0., 1.], 0.95).standard_error, (1.0_f64 / 8.0).sqrt());
    interval(exact(&[-1., 0., 0., 1.], 0.95).interval, -0.75, 0.75);
    interval(exact(&[-1., 0., 0., 1.], 0.90).interval, -0.5, 0.5);
    let of_means = exact(&[1., 0., 2.0 / 3.0], 0.95).standard_error;
    near(of_means, (14.0_f64 / 243.0).sqrt());
    // The clustered error of the three cases, without its factor for few clusters.
    let clusters = [[1., 1., 1.], [0., 0., 0.], [1., 0., 1.]].map(|cluster| cluster.to_vec());
    near(of_means, clustered_standard_error(&clusters).expect("defined") * (2.0_f64 / 3.0).sqrt());
    assert_eq!((bootstrap_exact(&[], 0.95), bootstrap_exact(&[0.0; 9], 0.95)), (None, None));
}

#[test]
fn a_seeded_bootstrap_is_repeatable_and_near_the_exact_one() {
    let values = [0., 1., 1., 1., 0., 1.];
    let (one, again) = (bootstrap(&values, 0.95, 2000, 7), bootstrap(&values, 0.95, 2000, 7));
    assert_eq!(one, again);
    assert_ne!(one, bootstrap(&values, 0.95, 2000, 8));
    let exact = bootstrap_exact(&values, 0.95).expect("defined");
    within(one.expect("defined").standard_error, exact.standard_error, 0.02);
    assert_eq!((bootstrap(&[], 0.95, 10, 1), bootstrap(&[1.0], 0.95, 0, 1)), (None, None));
    assert_eq!((bootstrap(&[f64::NAN], 0.95, 10, 1), bootstrap(&[1.0], 0.0, 10, 1)), (None, None));
}

#[test]
fn mcnemar_is_exact() {
    for (broken, fixed, two_sided, one_sided) in [
        (8, 2, 7.0 / 64.0, 0.054_687_5),
        (5, 0, 1.0 / 16.0, 0.031_25),
        (9, 3, 0.145_996_093_75, 0.072_998_046_875),
        (3, 3, 1.0, 0.656_25),
        (0, 0, 1.0, 1.0),
    ] {
        let test = mcnemar(broken, fixed);
        near(test.two_sided, two_sided);
        near(test.one_sided, one_sided);
    }
    near(mcnemar(12, 4).two_sided, 2517.0 / 32768.0);
    // Five that break and none that is mended is the least that is evident at one-sided 5 %.
    assert!(mcnemar(4, 0).one_sided > 0.05 && mcnemar(5, 0).one_sided < 0.05);
}

#[test]
fn mcnemar_holds_where_powers_of_two_underflow() {
    // Both sides of the border between the two ways to compute it: 1,000 changed cases.
    let (below, above) = (mcnemar(501, 499).two_sided, mcnemar(502, 500).two_sided);
    within(above, below, 1e-4);
    let far = mcnemar(1200, 1000).one_sided;
    assert!(far > 5e-6 && far < 2e-5, "4.2 standard deviations: {far}");
}

#[test]
fn paired_t_tests() {
    let test = |old: &[f64], new: &[f64]| paired_t(old, new, 0.95).expect("defined");
    let yes_no = test(&[1., 1., 1., 0., 1., 0., 1., 1., 0., 1.], &[1., 0., 1., 0., 1., 0., 0., 1., 0., 1.]);
    near(yes_no.mean, -0.2);
    near(yes_no.standard_error, 0.133_333_333_333_333_3);
    near(yes_no.t, -1.5);
    near(yes_no.p, 0.167_850_656_057_075_05);
    interval(yes_no.interval, -0.501_620_955_039_760_7, 0.101_620_955_039_760_65);
    let graded = test(&[0.8, 0.6, 1., 0.4, 0.9, 0.7], &[0.9, 0.6, 1., 0.7, 0.9, 0.9]);
    near(graded.mean, 0.1);
    near(graded.standard_error, 0.051_639_777_949_432_2);
    near(graded.t, 1.936_491_673_103_709);
    near(graded.p, 0.110_566_690_731_235_7);
    interval(graded.interval, -0.032_744_275_193_103_2, 0.232_744_275_193_103_2);
    let thirds = |values: [f64; 6]| values.map(|value| value / 3.0);
    let repeats = test(&thirds([3., 3., 2., 1., 0., 2.]), &thirds([3., 2., 2., 1., 0., 1.]));
    near(repeats.mean, -1.0 / 9.0);
    near(repeats.standard_error, 0.070_272_836_892_630_7);
    near(repeats.t, -1.581_138_830_084_19);
    near(repeats.p, 0.174_687_814_264_119_4);
}

#[test]
fn paired_t_says_when_it_is_undefined() {
    assert_eq!(paired_t(&[1., 0.], &[1., 0.], 0.95).map(|test| (test.mean, test.p)), Some((0.0, 1.0)));
    assert_eq!(paired_t(&[0., 0.], &[1., 1.], 0.95), None);
    assert_eq!(paired_t(&[0.], &[1.], 0.95), None);
    assert_eq!(paired_t(&[0., 1.], &[1.], 0.95), None);
}

#[test]
fn student_quantiles() {
    near(student_quantile(0.975, 9.0), 2.262_157_162_798_205);
    near(student_quantile(0.025, 9.0), -2.262_157_162_798_205);
    near(student_quantile(0.5, 3.0), 0.0);
    // With one degree of freedom the distribution is Cauchy's, with two it has a closed form.
    near(student_quantile(0.75, 1.0), 1.0);
    near(student_quantile(0.9, 2.0), 0.8 / 0.18_f64.sqrt());
    assert_eq!((student_quantile(1.0, 5.0), student_quantile(0.9, 0.0)), (None, None));
}

#[test]
fn sign_flips_are_exact_for_few_cases() {
    near(sign_flip(&[1., 1., 1., 1., 1.], 1), 2.0 / 32.0);
    near(sign_flip(&[1., -1.], 1), 1.0);
    near(sign_flip(&[0.0; 3], 1), 1.0);
    // Of the 16 sums ±4 come once each and ±2 four times each.
    near(sign_flip(&[1., 1., 1., -1.], 1), 10.0 / 16.0);
    assert_eq!((sign_flip(&[], 1), sign_flip(&[f64::INFINITY], 1)), (None, None));
}

#[test]
fn sign_flips_of_many_cases_are_seeded() {
    let many = [1.0; 17];
    assert_eq!(sign_flip(&many, 3), sign_flip(&many, 3));
    assert!(sign_flip(&many, 3).expect("defined") < 0.001);
}

#[test]
fn holm_adjusts_in_the_order_given() {
    all_near(&holm(&[0.01, 0.04, 0.03]), &[0.03, 0.06, 0.06]);
    assert_eq!((holm(&[]), holm(&[0.7, 0.8])), (vec![], vec![1.0, 1.0]));
}

#[test]
fn detectable_drops() {
    for (cases, rate, expected) in [(100, 0.2, 0.125_290_7), (50, 0.2, 0.177_187_8), (200, 0.1, 0.062_645_3)] {
        within(minimum_detectable_drop(cases, rate), expected, 1e-7);
    }
    assert_eq!((minimum_detectable_drop(0, 0.2), minimum_detectable_drop(10, 1.1)), (None, None));
}

#[test]
fn agreement_of_judges() {
    near(cohen_kappa(40, 10, 5, 45), 0.7);
    assert_eq!((cohen_kappa(0, 0, 0, 0), cohen_kappa(9, 0, 0, 0)), (None, None));
    near(krippendorff_nominal(&[vec![1, 1], vec![1, 0], vec![0, 0], vec![1, 1]]), 8.0 / 15.0);
    assert_eq!((krippendorff_nominal(&[vec![1]]), krippendorff_nominal(&[vec![1, 1]])), (None, None));
    near(rogan_gladen(0.70, 0.9, 0.8), 0.714_285_714_285_714_3);
    near(rogan_gladen(0.95, 0.98, 0.90), 0.965_909_090_909_090_9);
    near(rogan_gladen(0.30, 0.8, 0.6), 0.0);
    assert_eq!((rogan_gladen(0.5, 0.5, 0.5), rogan_gladen(1.5, 0.9, 0.9)), (None, None));
    near(majority(3, 0.8), 0.896);
    near(majority(5, 0.8), 0.942_08);
    near(majority(5, 0.6), 0.682_56);
    assert_eq!((majority(1, 1.0), majority(0, 0.5)), (Some(1.0), None));
}

/// So many trials of each kind.
fn trials(kinds: &[(FirstPass, usize)]) -> Vec<FirstPass> {
    kinds.iter().flat_map(|(kind, count)| std::iter::repeat_n(*kind, *count)).collect()
}

#[test]
fn the_curve_of_a_loop_without_censoring() {
    use FirstPass::{At, NeverWithin};
    let curve = loop_curve(&trials(&[(At(1), 70), (At(2), 20), (At(3), 6), (NeverWithin(4), 4)]), 4).expect("defined");
    all_near(&curve.pass_by, &[0.7, 0.9, 0.96, 0.96]);
    let hazard: Vec<f64> = curve.hazard.iter().map(|hazard| hazard.expect("somebody left")).collect();
    all_near(&hazard, &[0.7, 2.0 / 3.0, 3.0 / 5.0, 0.0]);
    all_near(&curve.expected_iterations, &[1.0, 1.3, 1.4, 1.44]);
    within(2760.0 * curve.expected_iterations[3], 3974.4, 1e-9);
    assert_eq!(choose_cap(&curve.pass_by, 0.01), Some(3));
}

#[test]
fn the_curve_of_a_loop_with_an_error() {
    use FirstPass::{At, Censored, NeverWithin};
    let kinds = [(At(1), 10), (At(2), 4), (At(3), 2), (At(5), 1), (Censored(3), 1), (NeverWithin(5), 2)];
    let curve = loop_curve(&trials(&kinds), 5).expect("defined");
    assert_eq!((&curve.at_risk[..], &curve.passed[..]), (&[20, 10, 5, 3, 3][..], &[10, 4, 2, 0, 1][..]));
    all_near(&curve.pass_by, &[0.5, 0.7, 0.82, 0.82, 0.88]);
    let expected = [0.111_803_398_9, 0.102_469_507_7, 0.09, 0.09, 0.077_459_666_9];
    for (actual, expected) in curve.standard_error.iter().zip(expected) {
        within(*actual, expected, 1e-10);
    }
}

#[test]
fn a_curve_where_nobody_is_left_stays() {
    let curve = loop_curve(&[FirstPass::At(1); 3], 3).expect("defined");
    assert_eq!(curve.hazard, [Some(1.0), None, None]);
    assert_eq!(curve.pass_by, [1.0, 1.0, 1.0]);
    assert_eq!((loop_curve(&[], 3), loop_curve(&[FirstPass::At(1)], 0)), (None, None));
}

#[test]
fn the_cap_is_past_the_last_gain() {
    assert_eq!(choose_cap(&[0.5, 0.7, 0.705, 0.80, 0.80], 0.01), Some(4), "a plateau, then a jump");
    assert_eq!((choose_cap(&[0.0, 0.0], 0.01), choose_cap(&[], 0.01)), (Some(1), None));
}

#[test]
fn what_zero_gains_support() {
    for (trials, expected, tolerance) in
        [(30, 0.095, 5e-4), (90, 0.0327, 5e-5), (298, 0.010_002, 5e-7), (299, 0.009_97, 5e-6)]
    {
        within(supported_gain(trials, 0.95), expected, tolerance);
    }
    for trials in [30, 90, 298, 299] {
        near(supported_gain(trials, 0.95), 1.0 - 0.05_f64.powf(1.0 / trials as f64));
    }
    assert!(supported_gain(298, 0.95) > Some(0.01) && supported_gain(299, 0.95) < Some(0.01));
    assert_eq!((supported_gain(0, 0.95), supported_gain(10, 1.0)), (None, None));
}

#[test]
fn sequences() {
    near(lcs_f1(&["A", "B", "C", "A"], &["A", "D", "C", "A"]), 0.75);
    near(lcs_f1(&["search", "open", "answer"], &["search", "search", "open", "answer", "log"]), 0.75);
    assert_eq!((lcs_f1(&[], &[]), lcs_f1(&["a"], &[]), lcs_f1(&[], &["a"])), (1.0, 0.0, 0.0));
}

#[test]
fn drafts_stall_and_oscillate() {
    for (drafts, expected) in [("ABAB", (0, 2, 2)), ("AABB", (2, 0, 2)), ("ABCA", (0, 1, 3)), ("ABCD", (0, 0, 4))] {
        let digests: Vec<u64> = drafts.bytes().map(u64::from).collect();
        let classes = classify_drafts(&digests);
        let count = |class| classes.iter().filter(|found| **found == class).count();
        assert_eq!((count(Draft::Stall), count(Draft::Oscillation), count(Draft::Distinct)), expected, "{drafts}");
    }
}

proptest! {
    #[test]
    fn values_are_rates_or_undefined(n in 0_u64..60, c in 0_u64..60, k in 0_u64..60, confidence in 0.01..0.99) {
        for rate in [pass_at_k(n, c, k), pass_hat_k(n, c, k)].into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&rate));
        }
        if let Some(Interval { low, high }) = wilson(c, n, confidence) {
            let rate = c as f64 / n as f64;
            prop_assert!(0.0 <= low && low <= rate && rate <= high && high <= 1.0);
        }
    }

    #[test]
    fn pass_at_k_rises_with_k(n in 1_u64..40, c in 0_u64..40, k in 1_u64..39) {
        prop_assume!(c <= n && k < n);
        let (now, next) = (pass_at_k(n, c, k).unwrap(), pass_at_k(n, c, k + 1).unwrap());
        prop_assert!(now <= next + 1e-12);
    }

    #[test]
    fn pass_at_1_is_the_pass_rate(n in 1_u64..200, c in 0_u64..200) {
        prop_assume!(c <= n);
        let rate = c as f64 / n as f64;
        prop_assert!((pass_at_k(n, c, 1).unwrap() - rate).abs() < 1e-12);
        prop_assert!((pass_hat_k(n, c, 1).unwrap() - rate).abs() < 1e-12);
    }

    #[test]
    fn a_curve_without_censoring_is_the_share_that_passed(passes in proptest::collection::vec(0_u32..7, 1..50)) {
        let trials: Vec<FirstPass> =
            passes.iter().map(|k| if *k == 0 { FirstPass::NeverWithin(6) } else { FirstPass::At(*k) }).collect();
        let curve = loop_curve(&trials, 6).unwrap();
        for k in 1..=6_u32 {
            let share = passes.iter().filter(|pass| **pass != 0 && **pass <= k).count() as f64 / passes.len() as f64;
            prop_assert!((curve.pass_by[k as usize - 1] - share).abs() < 1e-12);
        }
    }

    #[test]
    fn quantiles_are_symmetric_and_rise(p in 0.001..0.998, degrees in 1.0..200.0) {
        let t = student_quantile(p, degrees).unwrap();
        prop_assert!((student_quantile(1.0 - p, degrees).unwrap() + t).abs() < 1e-9 * (1.0 + t.abs()));
        prop_assert!(student_quantile(p + 0.001, degrees).unwrap() > t);
    }
}
