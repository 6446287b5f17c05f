use agent_core::*;
use agent_providers::*;
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}
#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct City {
    name: String,
    country: Option<String>,
    size: Size,
    tags: Vec<String>,
}
#[derive(Debug, Deserialize, JsonSchema)]
enum Size {
    Small,
    Big,
}
async fn go(client: RecordedClient) {
    let client = std::sync::Arc::new(client);
    let add = tool_fn("add", "Adds two numbers.", |a: Add, _: ToolContext| async move { Ok((a.a + a.b).to_string()) });
    let mut o = ChatAgentOptions::default();
    o.chat.temperature = Some(0.0);
    o.chat.seed = Some(7);
    o.chat.max_output_tokens = Some(200);
    o.instructions = "Use the tool add to add.".into();
    let agent = ChatAgent::new("a", client.clone(), o).tool(add);
    let mut s = Session::new();
    s.push("Please add 17 and 25 by the tool.");
    let cx = RunContext::default();
    let mut r = agent.run(&mut s, &cx);
    while let Some(u) = r.next().await {
        match u {
            Ok(Update::Delta(d)) => print!("{d:?} "),
            Ok(u) => println!("\n{u:?}"),
            Err(e) => println!("ERR {e:?}"),
        }
    }
    drop(r);
    let agent = ChatAgent::new("b", client, {
        let mut o = ChatAgentOptions::default();
        o.chat.temperature = Some(0.0);
        o
    });
    let mut s = Session::new();
    s.push("Paris as JSON");
    let t = run_typed::<City>(&agent, &mut s, &RunContext::default()).await;
    println!("{t:?}");
}
#[tokio::main]
async fn main() {
    let client = client_for("openai-compatible:coder", Some("http://127.0.0.1:18080/v1")).unwrap();
    let c = Recorded::open("/tmp/prov.jsonl", CassetteMode::Record).unwrap();
    go(c.trial("x", 0, client)).await;
    println!("---- replay");
    let text = std::fs::read_to_string("/tmp/prov.jsonl").unwrap();
    let c = Recorded::replay(&text).unwrap();
    let t = std::time::Instant::now();
    go(c.replay_trial("x", 0)).await;
    println!("{:?}", t.elapsed());
    go(c.replay_trial("y", 0)).await;
    let c = client_for("openai-compatible:coder", Some("http://127.0.0.1:1/v1")).unwrap();
    let mut s = c.stream(ChatRequest::default());
    println!("{:?}", s.next().await);
    let c = client_for("openai-compatible:coder", Some("http://127.0.0.1:18080/v2")).unwrap();
    println!("{:?}", c.stream(ChatRequest::default()).next().await);
    println!("{:?}", client_for("foo:coder", None).err());
    println!("{:?}", client_for("openai:coder", None).err());
}
