//! The tools that the cases of `evals/calls` choose from. What they say depends on their arguments alone.

use agent_core::{BoxError, Tool, ToolContext, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// All of them.
pub(super) fn tools() -> Vec<Box<dyn Tool>> {
    vec![
        tool("get_weather", "Tells the weather of a city.", |args: Weather| {
            let sky = ["clear", "cloudy", "rainy", "windy"][args.city.len() % 4];
            json!({ "city": args.city, "day": args.day, "sky": sky, "degrees": args.city.len() + 4 })
        }),
        tool(
            "set_timer",
            "Starts a timer.",
            |args: Timer| json!({ "runs_for_minutes": args.minutes, "label": args.label }),
        ),
        tool(
            "convert_currency",
            "Converts an amount of money into another currency.",
            |args: Conversion| json!({ "amount": args.amount * 2.0, "currency": args.to, "was": [args.amount, args.from] }),
        ),
        tool(
            "create_event",
            "Puts an event into the user's calendar.",
            |args: Event| json!({ "created": args.title, "date": args.date, "time": args.time }),
        ),
        tool(
            "list_events",
            "Lists the events of a day in the user's calendar.",
            |args: Day| json!({ "date": args.date, "events": [{ "id": 7, "title": "Dentist", "time": "15:00" }] }),
        ),
        tool(
            "delete_event",
            "Deletes an event from the user's calendar. It cannot be undone.",
            |args: Deletion| json!({ "deleted": args.id }),
        ),
        tool(
            "send_mail",
            "Sends a mail.",
            |args: Mail| json!({ "sent_to": args.to, "subject": args.subject, "words": args.body.split_whitespace().count() }),
        ),
        tool("find_route", "Finds the way from one place to another.", |args: Route| {
            let minutes = 10 + args.from.len() + args.to.len();
            json!({ "from": args.from, "to": args.to, "by": args.by, "minutes": minutes })
        }),
        tool(
            "add_to_list",
            "Adds an item to the user's shopping list.",
            |args: Item| json!({ "added": args.item, "quantity": args.quantity }),
        ),
        tool(
            "set_light",
            "Turns the light of a room on or off.",
            |args: Light| json!({ "room": args.room, "on": args.on }),
        ),
        tool(
            "translate",
            "Translates a text.",
            |args: Translation| json!({ "text": format!("[{}] {}", args.language, args.text) }),
        ),
    ]
}

fn tool<Args>(name: &str, description: &str, result: fn(Args) -> Value) -> Box<dyn Tool>
where
    Args: JsonSchema + serde::de::DeserializeOwned + Send + 'static,
{
    Box::new(tool_fn(
        name,
        description,
        move |args: Args, _: ToolContext| async move { Ok::<_, BoxError>(result(args)) },
    ))
}

#[derive(Deserialize, JsonSchema)]
struct Weather {
    city: String,
    /// As YYYY-MM-DD; today if absent.
    day: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Timer {
    minutes: f64,
    label: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Conversion {
    amount: f64,
    /// A code of ISO 4217, such as EUR.
    from: String,
    /// A code of ISO 4217, such as EUR.
    to: String,
}

#[derive(Deserialize, JsonSchema)]
struct Event {
    title: String,
    /// As YYYY-MM-DD.
    date: String,
    /// As HH:MM.
    time: String,
}

#[derive(Deserialize, JsonSchema)]
struct Day {
    /// As YYYY-MM-DD.
    date: String,
}

#[derive(Deserialize, JsonSchema)]
struct Deletion {
    id: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Mail {
    /// The address.
    to: String,
    subject: String,
    body: String,
}

#[derive(Deserialize, JsonSchema)]
struct Route {
    from: String,
    to: String,
    by: Means,
}

#[derive(Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Means {
    Foot,
    Bicycle,
    Car,
    Train,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    item: String,
    /// 1 if absent.
    quantity: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Light {
    /// Such as kitchen.
    room: String,
    on: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Translation {
    text: String,
    /// In English, such as French.
    language: String,
}
