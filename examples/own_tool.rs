//! A tool of the program's own: it says what a call needs, shows what it would do, and does exactly that.
//!
//! Where a function is enough, `FunctionTool` is shorter. Run it with `cargo run --example own_tool`.
#![expect(clippy::print_stdout, reason = "it shows what the calls return")]

use serde_json::{Value, json};
use stockade::{
    ApprovalContext, ApprovalDecision, ApprovalRequest, Assessed, Assessment, Boxed, Lazy, Output, OutputEnd,
    OverrideByConfig, Prepared, Presentation, Tool, ToolError, ToolSet,
};

/// Sets the price of an article. A raise by less than a tenth needs no yes; nothing is ever given away.
struct SetPrice {
    price: f64,
}

impl Tool for SetPrice {
    fn name(&self) -> &'static str {
        "set_price"
    }

    fn description(&self) -> String {
        "Sets the price of the article.".to_owned()
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]})
    }

    fn assess<'a>(&'a mut self, call: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
        Box::pin(async move {
            let Some(new) = call.args["price"].as_f64() else {
                let (tool, why) = (self.name().to_owned(), "`price` is no number".to_owned());
                return Err(ToolError::Arguments { tool, why });
            };
            let diff = format!("-{}\n+{new}\n", self.price);
            let assessment = if new <= 0.0 {
                Assessment::Blocked("nothing is given away".to_owned())
            } else if new >= self.price && new < self.price * 1.1 {
                Assessment::PreApproved(None)
            } else {
                Assessment::NeedsApproval(Box::new(ApprovalRequest {
                    presentation: Lazy::new(move || Ok(Presentation::Diff(diff.clone()))),
                    ..ApprovalRequest::new(self.name(), format!("set the price to {new}"))
                }))
            };
            Ok(Assessed {
                assessment,
                prepared: Prepared::of(new),
                override_by_config: OverrideByConfig::Possible,
            })
        })
    }

    fn call<'a>(&'a mut self, call: &'a ApprovalContext, prepared: Prepared) -> Boxed<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            // Without a guard nothing was prepared, and nobody was asked.
            let prepared = if prepared.is_nothing() {
                self.assess(call).await?.into_prepared()?
            } else {
                prepared
            };
            self.price = prepared.take().unwrap_or(self.price);
            Ok(Output::new(
                OutputEnd::Done,
                format!("the price is {}", self.price),
                json!(self.price),
            ))
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // A session takes it as well: `session.tools().add(…)`.
    let mut tools = ToolSet::builder()
        .approver(|request: &ApprovalRequest| {
            println!("? {}", request.description);
            ApprovalDecision::deny("ask the owner")
        })
        .build();
    tools.add(Box::new(SetPrice { price: 100.0 }));
    for price in [105, 50, 0] {
        match tools.call("set_price", json!({"price": price})).await {
            Ok(output) => println!("{}", output.text),
            Err(error) => println!("{error}"),
        }
    }
}
