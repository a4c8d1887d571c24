#!/usr/bin/env python3
"""Checks a running `caro serve` with the official `openai` package, call by call as its users make them.

    openai_python.py URL TOKEN [--scripted] [--vectors]

--scripted: the server answers from `script()` below (`--print-script` prints it), so that texts can be compared, too.
--vectors: the embedding model is installed; without this flag the error for its absence is checked.
Prints a line for each check; the exit code is 1 if one failed.
"""

import argparse
import json
import sys
import traceback

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Tells the weather of a city.", "parameters": CITY}}]
CALL = '{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def script():
    rules = [
        {"match": "<tool_response>", "reply": "It is 4 degrees in Oslo."},
        {"match": "must", "system": "<tools>", "reply": CALL},
        {"match": "weather", "system": "<tools>", "reply": "<tool_call>\n" + CALL},
        {"match": "person", "reply": '{"name": "Ann", "age": 7}'},
        {"match": "Once upon", "reply": " a time"},
        {"reply": "Hello, dear friend."},
    ]
    return {"rules": rules}


CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def user(text):
    return [{"role": "user", "content": text}]


@check
def models(c):
    listed = [model.id for model in c.client.models.list()]
    assert listed[0] == c.model, listed
    assert c.client.models.retrieve(c.model).id == c.model


@check
def chat(c):
    done = c.client.chat.completions.create(model=c.model, messages=user("Say hello."), max_tokens=20, temperature=0, seed=1)
    choice = done.choices[0]
    assert choice.message.role == "assistant" and choice.message.content, done
    assert choice.finish_reason in ("stop", "length") and done.usage.completion_tokens <= 20, done
    c.same(choice.message.content, "Hello, dear friend.")


@check
def chat_stream(c):
    options = {"include_usage": True}
    parts, usage, ends = [], None, []
    for chunk in c.client.chat.completions.create(
        model=c.model, messages=user("Say hello."), max_tokens=20, stream=True, stream_options=options
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            parts.append(choice.delta.content or "")
            ends += [choice.finish_reason] if choice.finish_reason else []
    assert "".join(parts) and len(ends) == 1 and usage.total_tokens > 0, (parts, ends, usage)
    c.same("".join(parts), "Hello, dear friend.")


@check
def choices(c):
    done = c.client.chat.completions.create(model=c.model, messages=user("Say hello."), max_tokens=5, n=3)
    assert [choice.index for choice in done.choices] == [0, 1, 2], done


@check
def schema(c):
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    done = c.client.chat.completions.create(model=c.model, messages=user("Make up a person."), response_format=form)
    person = json.loads(done.choices[0].message.content)
    assert set(person) == {"name", "age"} and isinstance(person["age"], int), person


@check
def schema_of_a_class(c):
    from pydantic import BaseModel

    class Person(BaseModel):
        name: str
        age: int

    done = c.client.chat.completions.parse(model=c.model, messages=user("Make up a person."), response_format=Person)
    assert isinstance(done.choices[0].message.parsed, Person), done


@check
def tools_and_back(c):
    messages = user("What is the weather in Oslo?")
    done = c.client.chat.completions.create(model=c.model, messages=messages, tools=TOOLS, temperature=0)
    message = done.choices[0].message
    if not message.tool_calls:
        assert not c.scripted and message.content, done
        print("  (the model chose to answer in words)")
        return
    assert done.choices[0].finish_reason == "tool_calls", done
    call = message.tool_calls[0]
    assert call.function.name == "weather" and "city" in json.loads(call.function.arguments), call
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "4 degrees"}]
    last = c.client.chat.completions.create(model=c.model, messages=messages, tools=TOOLS, max_tokens=60, temperature=0)
    c.same(last.choices[0].message.content, "It is 4 degrees in Oslo.")


@check
def tools_that_must_be_called(c):
    for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
        done = c.client.chat.completions.create(
            model=c.model, messages=user("You must look up Oslo."), tools=TOOLS, tool_choice=choice
        )
        call = done.choices[0].message.tool_calls[0]
        assert call.function.name == "weather" and "city" in json.loads(call.function.arguments), done


@check
def tools_stream(c):
    with c.client.chat.completions.stream(
        model=c.model, messages=user("You must look up Oslo."), tools=TOOLS, tool_choice="required"
    ) as stream:
        for _ in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    assert call.function.name == "weather" and "city" in json.loads(call.function.arguments), message


@check
def completion(c):
    done = c.client.completions.create(model=c.model, prompt="Once upon", max_tokens=4, temperature=0)
    assert done.choices[0].text, done
    c.same(done.choices[0].text, " a time")
    text = "".join(part.choices[0].text for part in c.client.completions.create(model=c.model, prompt="Once upon", stream=True))
    assert text


@check
def vectors(c):
    import openai

    texts = ["a cat", "a kitten", "a tax form"]
    if not c.vectors:
        try:
            c.client.embeddings.create(model="all-minilm-l6-v2", input=texts)
        except openai.NotFoundError as error:
            assert "caro model pull" in str(error), error
            return
        raise AssertionError("there were vectors")
    # the package requests base64 by default
    done = c.client.embeddings.create(model="all-minilm-l6-v2", input=texts)
    cat, kitten, tax = (item.embedding for item in done.data)
    close = lambda a, b: sum(x * y for x, y in zip(a, b))
    assert len(cat) == 384 and close(cat, kitten) > close(cat, tax), done
    plain = c.client.embeddings.create(model="all-minilm-l6-v2", input=texts[0], encoding_format="float").data[0].embedding
    assert max(abs(x - y) for x, y in zip(cat, plain)) < 1e-5 and done.usage.total_tokens > 0


@check
def classes_of_errors(c):
    import openai

    create = c.client.chat.completions.create
    for wanted, code, arguments in [
        (openai.NotFoundError, "model_not_found", {"model": "gpt-4o"}),
        (openai.BadRequestError, "invalid_value", {"temperature": 9}),
        (openai.BadRequestError, "unsupported_parameter", {"logit_bias": {"1": 5}}),
        (openai.BadRequestError, "context_length_exceeded", {"messages": user("word " * 40_000)}),
    ]:
        try:
            create(**{"model": c.model, "messages": user("x"), **arguments})
        except wanted as error:
            assert error.code == code and error.body["message"], error
        else:
            raise AssertionError(f"no {wanted.__name__} for {list(arguments)}")
    try:
        openai.OpenAI(base_url=c.client.base_url, api_key="wrong").models.list()
    except openai.AuthenticationError:
        return
    raise AssertionError("a wrong token was taken")


class Context:
    def __init__(self, args):
        import openai

        self.client = openai.OpenAI(base_url=args.url.rstrip("/") + "/v1", api_key=args.token, timeout=600)
        self.model = self.client.models.list().data[0].id
        self.scripted, self.vectors = args.scripted, args.vectors

    def same(self, found, wanted):
        assert not self.scripted or found == wanted, (found, wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?")
    parser.add_argument("token", nargs="?")
    parser.add_argument("--scripted", action="store_true")
    parser.add_argument("--vectors", action="store_true")
    parser.add_argument("--print-script", action="store_true")
    args = parser.parse_args()
    if args.print_script:
        print(json.dumps(script()))
        return 0
    if not args.token:
        parser.error("where is the server, and what is its token?")
    import openai

    context, failed = Context(args), 0
    print(f"openai {openai.__version__}, {context.model}")
    for function in CHECKS:
        try:
            function(context)
            print(f"ok      {function.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED  {function.__name__}")
            traceback.print_exc(file=sys.stdout)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
