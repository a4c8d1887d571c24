#!/usr/bin/env node
// Runs the official `openai` package of npm against a running `caro serve` that answers from the script of `openai_python.py`:
//
//     node openai_node.mjs URL TOKEN [--vectors]
//
// Prints a line for each check; ends with 1 if one failed. The package is looked for where this is run.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { OpenAI } = createRequire(process.cwd() + "/")("openai");
const [url, token, ...flags] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url + "/v1", apiKey: token });
const model = (await client.models.list()).data[0].id;
const user = text => [{ role: "user", content: text }];
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const tools = [{ type: "function", function: { name: "weather", description: "Tells the weather of a city.", parameters } }];

const checks = {
  async chat() {
    const done = await client.chat.completions.create({ model, messages: user("Say hello."), max_tokens: 20 });
    assert.equal(done.choices[0].message.content, "Hello, dear friend.");
    assert.equal(done.choices[0].finish_reason, "stop");
  },
  async stream() {
    const parts = await client.chat.completions.create({
      model, messages: user("Say hello."), stream: true, stream_options: { include_usage: true },
    });
    let text = "", usage;
    for await (const chunk of parts) {
      text += chunk.choices[0]?.delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, "Hello, dear friend.");
    assert.ok(usage.completion_tokens > 0);
  },
  async schema() {
    const schema = { type: "object", properties: { name: { type: "string" }, age: { type: "integer" } }, required: ["name", "age"] };
    const response_format = { type: "json_schema", json_schema: { name: "person", schema, strict: true } };
    const done = await client.chat.completions.parse({ model, messages: user("Make up a person."), response_format });
    assert.deepEqual(done.choices[0].message.parsed, { name: "Ann", age: 7 });
  },
  async toolsRun() {
    let asked;
    const weather = { ...tools[0].function, parse: JSON.parse, function: args => { asked = args.city; return "4 degrees"; } };
    const runner = client.chat.completions.runTools({
      model, messages: user("What is the weather in Oslo?"), tools: [{ type: "function", function: weather }],
    });
    assert.equal(await runner.finalContent(), "It is 4 degrees in Oslo.");
    assert.equal(asked, "Oslo");
  },
  async toolsStream() {
    const stream = client.chat.completions.stream({ model, messages: user("You must look up Oslo."), tools, tool_choice: "required" });
    const [call] = (await stream.finalChatCompletion()).choices[0].message.tool_calls;
    assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["weather", { city: "Oslo" }]);
  },
  async completion() {
    const done = await client.completions.create({ model, prompt: "Once upon", max_tokens: 4 });
    assert.equal(done.choices[0].text, " a time");
  },
  async vectors() {
    const ask = client.embeddings.create({ model: "all-minilm-l6-v2", input: ["a cat", "a kitten"] });
    if (!flags.includes("--vectors")) return assert.rejects(ask, OpenAI.NotFoundError);
    assert.equal((await ask).data[1].embedding.length, 384);
  },
  async errors() {
    const create = more => client.chat.completions.create({ model, messages: user("x"), ...more });
    await assert.rejects(create({ model: "gpt-4o" }), error => error instanceof OpenAI.NotFoundError && error.code === "model_not_found");
    await assert.rejects(create({ temperature: 9 }), error => error instanceof OpenAI.BadRequestError && error.param === "temperature");
    await assert.rejects(new OpenAI({ baseURL: url + "/v1", apiKey: "wrong" }).models.list(), OpenAI.AuthenticationError);
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
process.exitCode = failed ? 1 : 0;
