//! The pages of the guide; their programs compile, and run.

macro_rules! pages {
    ($($name:ident: $file:literal,)*) => {
        $(#[doc = include_str!(concat!("../../docs/", $file))] struct $name;)*
    };
}

pages! {
    FirstLoop: "first-loop.md",
    Evaluators: "evaluators.md",
    Approvals: "approvals.md",
    Budgets: "budgets.md",
    Testing: "testing.md",
    Evaluating: "evaluating.md",
    Providers: "providers.md",
    Sessions: "sessions.md",
    Scaling: "scaling.md",
    Migrating: "migrating.md",
}
