/** Playground: chat with streaming, stops, retries and errors, and all other types of generation. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { findJsonFault } from "../../dashboard/src/pages/playground/chat/json-fault.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { BEEPING_MICROPHONE, launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { type DashboardVisit, seriousFindings, visitDashboard } from "../support/dashboard.js";
import type { RecordedRequest } from "../support/fake-upstream.js";
import { createFakeVideos, readClip } from "../support/fake-videos.js";
import { chatChunk, chatChunks, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { imagesObject, picture } from "../support/pictures.js";
import { recording } from "../support/recordings.js";
import { errorReply, hang, json, raw, sse } from "../support/upstream-replies.js";

const SEEING = {
  ...{ id: "acme/seeing", title: "Seeing", modality: "text", upstream: "acme", upstreamModel: "upstream-seeing" },
  ...{ inputModalities: ["text", "image"], prices: { promptTextPrice: "0.000001", completionTextPrice: "0.000002" } },
};

/** The content of the browser's history. */
function storedConversations(page: Page): Promise<string> {
  return page.evaluate(
    () =>
      new Promise<string>((resolve, reject) => {
        const opening = indexedDB.open("sluice-playground");
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const reading = opening.result.transaction("items", "readonly").objectStore("items").getAll();
          reading.onsuccess = () => resolve(JSON.stringify(reading.result));
          reading.onerror = () => reject(reading.error);
          opening.result.close();
        };
      }),
  );
}

describe.skipIf(NO_BROWSER)("playground", () => {
  let browser: Browser;
  let app: TestApp;
  let visit: DashboardVisit;
  let page: Page;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(BEEPING_MICROPHONE), createTestApp({ models: [SEEING] })]);
    visit = await visitDashboard(browser, app, { name: "Ada", credits: 50 });
    page = visit.page;
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });
  afterEach(() => expect(visit.browserErrors).toEqual([]));

  const message = () => page.getByRole("textbox", { name: "Message" });
  const answers = () => page.getByRole("article");
  const bodyOf = (request: RecordedRequest | undefined) => request?.json as { messages: { role: string; content: string }[] };
  const send = async (text: string) => {
    await message().fill(text);
    await message().press("Enter");
  };
  /** Runs code of the page with the key of the test app. `FILE` is in the working directory. */
  const runCode = async (name: string, program: string, flags: readonly string[], cwd = app.dataDir) => {
    await page.getByRole("button", { name: "View code" }).click();
    await page.getByRole("tab", { name }).click();
    const code = await page.getByRole("region", { name: `${name} code` }).innerText();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    const env = { ...process.env, SLUICE_API_KEY: app.key };
    return (await promisify(execFile)(program, [...flags, code], { cwd, env })).stdout;
  };
  /** Runs a command in a shell and parses its JSON output. */
  const runCommand = async (name: "curl" | "GraphQL") => JSON.parse(await runCode(name, "bash", ["-c"])) as Record<string, unknown>;

  it("streams an answer as Markdown, with an estimate while it runs and the exact cost at its end", async () => {
    await visit.open("playground");
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const first = ["# Wind\n\nIt **turns** ", "wheels, see [here](https://example.com).\n\n```js\nlet a = 1;\n"];
    app.upstream.replyNext(
      sse([
        ...first.map((content) => ({ do: "event" as const, data: JSON.stringify(chatChunk({ content })) })),
        { do: "wait", until: ended },
        ...[chatChunk({ content: "```\n\n<b>raw</b> ![x](https://example.com/x.png)" }, "stop"), usageChunk(wireUsage(10, 50))].map(
          (chunk) => ({
            do: "event" as const,
            data: JSON.stringify(chunk),
          }),
        ),
      ]),
    );

    await send("What does wind do?");

    await page.getByRole("heading", { name: "Wind" }).waitFor();
    await page.getByText("let a = 1;").waitFor();
    expect(Number(await page.locator("[data-estimate]").getAttribute("data-estimate"))).toBeGreaterThan(0);
    await screenshot(page, "playground-chat-streaming");
    end();
    await expect.poll(() => page.locator("[data-cost]").getAttribute("data-cost")).toBe("0.00011");
    expect(await page.getByRole("link", { name: "here" }).getAttribute("rel")).toContain("noopener");
    expect(await answers().locator("img, b").count()).toBe(0);
    await page.getByText("<b>raw</b>").waitFor();
    await screenshot(page, "playground-chat");
  });

  it("stops immediately, and shows the cost of the partial answer", async () => {
    app.upstream.replyNext(sse([chatChunk({ content: "One " })], { end: "hang" }));
    const seen = app.upstream.requests.length;

    await send("Count.");
    await page.getByText("One", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();

    expect(await app.upstream.requests[seen]?.closedByClient).toBeGreaterThan(0);
    await page.getByText("Stopped.").waitFor();
    await expect.poll(() => page.locator("[data-cost]").last().getAttribute("data-cost")).toMatch(/^0\.0000/);
  });

  it("resends an edited message without the later ones", async () => {
    app.upstream.replyNext(sse(chatChunks(["Edited."])));
    const seen = app.upstream.requests.length;

    await page.getByRole("button", { name: "Edit" }).first().click();
    await page.getByRole("textbox", { name: "Your message" }).fill("What does water do?");
    await page.getByRole("button", { name: "Resend" }).click();
    await page.getByText("Edited.").waitFor();

    expect(bodyOf(app.upstream.requests[seen]).messages).toEqual([{ role: "user", content: "What does water do?" }]);
    expect(await answers().count()).toBe(1);
  });

  it("keeps an interrupted answer with a notice, and retries it", async () => {
    app.upstream.replyNext(sse([chatChunk({ content: "Half of it" })], { end: "cut" }), sse(chatChunks(["All of it"])));

    await send("Go on.");

    await answers().getByText("Answer interrupted").waitFor();
    await page.getByText("Half of it").waitFor();
    await expect.poll(() => page.locator("[data-cost]").last().getAttribute("data-cost")).toMatch(/^0\./);
    await screenshot(page, "playground-chat-broken");
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("All of it").waitFor();
    expect(await page.getByText("Half of it").count()).toBe(0);
  });

  it("returns a rejected message to the input, and marks the invalid setting", async () => {
    const temperature = page.getByLabel("Temperature");
    await temperature.fill("3");

    await send("Warm words");

    await page.getByRole("alert").getByText("temperature", { exact: false }).waitFor();
    expect(await message().inputValue()).toBe("Warm words");
    expect(await temperature.getAttribute("aria-invalid")).toBe("true");
    await screenshot(page, "playground-chat-refused");
    await temperature.fill("");
    await message().press("Enter");
    await page.getByText("Hello, world.").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  it("offers to limit an answer to the tokens that the balance covers, and sends it again with that limit", async () => {
    const poor = await visitDashboard(browser, app, { credits: 50 });
    app.upstream.replyNext(sse(chatChunks(["Short."])));
    await poor.open("playground?model=acme/dear");
    await poor.page.getByRole("textbox", { name: "Message" }).fill("Write a long story.");
    await poor.page.getByRole("textbox", { name: "Message" }).press("Enter");
    await poor.page.getByText(/^This request may cost up to [\d.,]+ credits, and you have [\d.]+ left\./).waitFor();
    await screenshot(poor.page, "playground-limit");
    const button = poor.page.getByRole("button", { name: /^Limit to [\d,]+ tokens$/ });
    const limit = Number((await button.innerText()).replace(/\D/g, ""));
    await button.click();

    await poor.page.getByText("Short.").waitFor();
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ max_tokens: limit });
    await poor.context.close();
  });

  it("offers tools, shows tool calls, and sends their results", async () => {
    await page.getByLabel("Tools (JSON)").fill('[{"name": "get_weather"');
    await page.getByText('Invalid JSON at line 1, column 24: expected "," or "}".').waitFor();
    await page.getByLabel("Tools (JSON)").fill('[{"name": "get_weather", "parameters": {"type": "object"}}]');
    const call = { index: 0, id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":' } };
    app.upstream.replyNext(
      sse([
        chatChunk({ tool_calls: [call] }),
        chatChunk({ tool_calls: [{ index: 0, function: { arguments: '"Oslo"}' } }] }),
        chatChunk({}, "tool_calls"),
      ]),
      sse(chatChunks(["Rain in Oslo."])),
    );
    const seen = app.upstream.requests.length;

    await send("Weather?");
    await page.getByLabel("Result of get_weather").fill("rain");
    await page.getByText('"city": "Oslo"').waitFor();
    await page.getByRole("button", { name: "Send tool results" }).click();
    await page.getByText("Rain in Oslo.").waitFor();

    expect(app.upstream.requests[seen]?.json).toMatchObject({ tools: [{ type: "function", function: { name: "get_weather" } }] });
    expect(bodyOf(app.upstream.requests[seen + 1]).messages.slice(-2)).toMatchObject([
      { role: "assistant", tool_calls: [{ id: "call_1", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } }] },
      { role: "tool", tool_call_id: "call_1", content: "rain" },
    ]);
    await page.getByLabel("Tools (JSON)").fill("");
  });

  it("stores conversations in the browser, restores them after a reload, and deletes them", async () => {
    const conversationOf = () => new URL(page.url()).searchParams.get("conversation");
    const conversation = conversationOf();
    await page.reload();
    await page.getByText("Rain in Oslo.").waitFor();
    expect(conversationOf()).toBe(conversation);

    await page.getByRole("button", { name: "New" }).click();
    await page.getByText("Start a conversation").waitFor();
    await page.getByRole("button", { name: "History" }).click();
    await page.getByRole("link", { name: "What does water do?" }).click();
    await page.getByText("Rain in Oslo.").waitFor();

    await page.getByRole("button", { name: "History" }).click();
    await screenshot(page, "playground-history");
    await page.getByRole("button", { name: "Delete all" }).click();
    await page.getByRole("button", { name: "Delete permanently" }).click();
    await page.getByText("No conversations yet").waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("Start a conversation").waitFor();
  });

  it("compares two models side by side", async () => {
    await visit.open("playground?model=acme/chat&with=acme/chat-b");
    app.upstream.replyAlways({
      kind: "handler",
      handle: (request, response) => {
        const { model } = request.json as { model: string };
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const chunk of chatChunks([`I am ${model}.`])) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
        response.end("data: [DONE]\n\n");
      },
    });

    await send("Who are you?");

    await page.getByLabel("Answer of acme/chat-b").getByText("I am upstream-chat-b.").waitFor();
    await expect
      .poll(() => answers().allInnerTexts())
      .toEqual([expect.stringContaining("I am upstream-chat."), expect.stringContaining("I am upstream-chat-b.")]);
    await screenshot(page, "playground-compare");
    expect(await page.getByText(/^I am /).count()).toBe(2);

    // The default model stands in no address.
    await visit.open("playground");
    const picker = page.getByRole("combobox", { name: "Model", exact: true });
    await expect.poll(() => picker.inputValue()).not.toBe("");
    const first = await picker.inputValue();
    await page.getByRole("button", { name: "Compare with another model" }).click();
    const second = page.getByRole("combobox", { name: "Second model" });
    await expect.poll(() => second.inputValue()).not.toBe(first);
    await second.click();
    await page.getByRole("option", { name: "acme/chat-b" }).click();
    await send("And you?");
    await page.getByLabel("Answer of acme/chat-b").getByText("I am upstream-chat-b.").waitFor();
    await page.waitForURL(/conversation=/);
    await expect.poll(() => storedConversations(page)).toContain("I am upstream-chat-b.");
    await page.reload();
    await page.getByLabel("Answer of acme/chat-b").getByText("I am upstream-chat-b.").waitFor();
    await expect.poll(() => picker.inputValue()).toBe(first);
    expect(await second.inputValue()).toBe("acme/chat-b");
    await page.getByRole("button", { name: "Stop comparing" }).click();
    app.upstream.replyAlways(null);
  });

  it("picks a model by name, vendor, capability or price", async () => {
    await visit.open("playground");
    const picker = page.getByRole("combobox", { name: "Model", exact: true });
    await expect.poll(() => picker.inputValue()).not.toBe("");
    const offered = async (search: string) => {
      await picker.fill(search);
      return page.getByRole("option").allInnerTexts();
    };
    await picker.click();
    await expect.poll(() => offered("free")).toContainEqual(expect.stringMatching(/^sandbox\/text\s+Free/));
    expect((await offered("free")).join()).not.toContain("acme/chat-b");
    await expect.poll(() => offered("acme tool")).toEqual([expect.stringMatching(/^acme\/chat\s+Credits: 1\.00 input.* · tool calling/)]);
    await screenshot(page, "playground-picker");
    await offered("sandbox/text");
    await page.getByRole("option", { name: /^sandbox\/text\b(?!-)/ }).click();
    await expect.poll(() => picker.inputValue()).toBe("sandbox/text");
  });

  it("shows tables, and copies an answer and its code", async () => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    const text = "| City | Rain |\n| --- | ---: |\n| Oslo | **763** mm |\n\n```js\nlet a = 1;\n```";
    await visit.open("playground?model=acme/chat");
    app.upstream.replyNext(sse(chatChunks([text])));

    await send("How much rain?");

    await page.getByRole("cell", { name: "763 mm" }).waitFor();
    expect(await page.getByRole("columnheader").allInnerTexts()).toEqual(["City", "Rain"]);
    expect(
      await page
        .locator("td")
        .last()
        .evaluate((cell) => getComputedStyle(cell).textAlign),
    ).toBe("right");
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.getByRole("button", { name: "Copied", exact: true }).waitFor();
    expect(await copied()).toBe("let a = 1;\n");
    await page.getByRole("button", { name: "Copy the answer of acme/chat" }).click();
    await expect.poll(copied).toBe(text);
    await screenshot(page, "playground-table");
    expect(await seriousFindings(page)).toEqual([]);
  });

  it("regenerates a good answer in its place", async () => {
    app.upstream.replyNext(sse(chatChunks(["About 763 mm."])));

    await page.getByRole("button", { name: "Regenerate the answer of acme/chat" }).click();

    await page.getByText("About 763 mm.").waitFor();
    expect(await answers().count()).toBe(1);
    const { messages } = bodyOf(app.upstream.requests.at(-1));
    expect(messages).toEqual([{ role: "user", content: "How much rain?" }]);
  });

  it("sends pictures and text files with a message, and shows them in it, also after a reload", async () => {
    await visit.open("playground?model=acme/seeing");
    await page.locator('input[type="file"]').setInputFiles([
      { name: "mill.png", mimeType: "image/png", buffer: await picture() },
      { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("# Wind\n") },
    ]);
    await page.getByRole("img", { name: "mill.png" }).waitFor();
    app.upstream.replyNext(sse(chatChunks(["A mill."])));

    await send("What is this?");

    await page.getByText("A mill.").waitFor();
    const { messages } = bodyOf(app.upstream.requests.at(-1));
    expect(messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?\n\nFile notes.md:\n\n# Wind\n" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${(await picture()).toString("base64")}` } },
        ],
      },
    ]);
    await screenshot(page, "playground-attachments");
    await page.reload();
    await page.getByRole("img", { name: "mill.png" }).waitFor();
    await page.getByText("notes.md").waitFor();
  });

  it("sends a PDF as a file part, and refuses one that is too large, is none, or that the model does not read", async () => {
    const pdf = Buffer.from("%PDF-1.4\n%%EOF\n");
    const file = (name: string, buffer: Buffer) => ({ name, mimeType: "application/pdf", buffer });
    const input = page.locator('input[type="file"]');
    await visit.open("playground?model=acme/seeing");
    await input.setInputFiles([file("plan.pdf", pdf)]);
    await page.getByRole("button", { name: "Remove plan.pdf" }).waitFor();
    await input.setInputFiles([file("large.pdf", Buffer.concat([pdf, Buffer.alloc(8 * 1_024 * 1_024)]))]);
    await page.getByText("large.pdf is too large: a PDF may have 8 MiB.").waitFor();
    await input.setInputFiles([file("none.pdf", Buffer.from("<html>"))]);
    await page.getByText("none.pdf is not a PDF.").waitFor();
    app.upstream.replyNext(sse(chatChunks(["A plan."])));

    await send("What is this?");

    await page.getByText("A plan.").waitFor();
    const file_data = `data:application/pdf;base64,${pdf.toString("base64")}`;
    expect(bodyOf(app.upstream.requests.at(-1)).messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "file", file: { filename: "plan.pdf", file_data } },
        ],
      },
    ]);
    await page.getByText("plan.pdf").waitFor();
    await screenshot(page, "playground-pdf");
    await visit.open("playground?model=acme/chat");
    await input.setInputFiles([file("plan.pdf", pdf)]);
    await page.getByText("The selected model does not accept PDFs.").waitFor();
  });

  it("saves settings as a preset of the account, and applies, changes, renames and deletes it", async () => {
    await visit.open("playground?model=acme/chat-b");
    const preset = page.getByRole("combobox", { name: "Preset" });
    const prompt = page.getByLabel("System prompt");
    await prompt.fill("Be brief.");
    await page.getByLabel("Temperature").fill("0.3");
    await page.getByLabel("Stop sequences").fill("END\nSTOP");
    await page.getByRole("button", { name: "Save as preset" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Short Answers");
    await page.getByRole("button", { name: "Save preset" }).click();
    await page.getByText("must consist of lower-case letters").waitFor();
    await screenshot(page, "playground-preset-refused");
    await page.getByRole("dialog").getByLabel("Name").fill("short-answers");
    await page.getByRole("button", { name: "Save preset" }).click();
    await page.getByText("Version 1").waitFor();

    // Another browser of the account has it, too.
    await page.evaluate("indexedDB.databases().then((all) => all.forEach(({ name }) => indexedDB.deleteDatabase(name)))");
    await visit.open("playground?model=acme/chat");
    await preset.click();
    await page.getByRole("option", { name: "short-answers" }).click();
    await expect.poll(() => prompt.inputValue()).toBe("Be brief.");
    expect(await page.getByLabel("Stop sequences").inputValue()).toBe("END\nSTOP");
    app.upstream.replyNext(sse(chatChunks(["Short."])));
    await send("Hi");
    await page.getByText("Short.").waitFor();
    const sent = app.upstream.requests.at(-1)?.json;
    expect(sent).toMatchObject({ model: "upstream-chat-b", temperature: 0.3, stop: ["END", "STOP"] });
    expect(sent).toMatchObject({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi" },
      ],
    });

    await page.getByText("Version 1", { exact: true }).waitFor();
    await prompt.fill("Be very brief.");
    await page.getByText("Version 1 · Unsaved changes").waitFor();
    await screenshot(page, "playground-preset-changed");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Version 2", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("shortest");
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
    await expect.poll(() => preset.inputValue()).toBe("shortest");
    await page.getByText("Version 2", { exact: true }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("button", { name: "Delete preset" }).click();
    await expect.poll(() => preset.getAttribute("placeholder")).toBe("No presets yet");
    expect(await prompt.inputValue()).toBe("Be very brief.");
  });

  it("refuses files that no message can hold, with the reason", async () => {
    const input = page.locator('input[type="file"]');
    await input.setInputFiles([{ name: "song.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0, 255, 1]) }]);
    await page.getByText("song.bin is not an image, a PDF or a text file.").waitFor();
    await input.setInputFiles([{ name: "long.txt", mimeType: "text/plain", buffer: Buffer.alloc(200 * 1_024 + 1, "a") }]);
    await page.getByText("long.txt is too large: a text file may have 200 KiB.").waitFor();
    await visit.open("playground?model=acme/chat");
    await page.locator('input[type="file"]').setInputFiles([{ name: "mill.png", mimeType: "image/png", buffer: await picture() }]);
    await page.getByText("The selected model does not accept images.").waitFor();
    expect(await page.getByRole("button", { name: "Remove mill.png" }).count()).toBe(0);
  });

  it("shows the request as working code without a key", async () => {
    await page.getByLabel("Max tokens").fill("50");
    await message().fill('It\'s $HOME\n\\ "and" `all`');
    await page.getByRole("button", { name: "View code" }).click();
    expect(await page.getByRole("region", { name: "curl code" }).innerText()).toContain("Bearer $SLUICE_API_KEY");
    await page.getByRole("tab", { name: "Python" }).click();
    await page.getByRole("region", { name: "Python code" }).getByText("client.chat.completions.create(").waitFor();
    await screenshot(page, "playground-code");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    app.upstream.replyNext(...Array.from({ length: 3 }, () => json(chatCompletion({ content: "Pasted." }))));
    const seen = app.upstream.requests.length;

    expect(await runCommand("curl")).toMatchObject({ choices: [{ message: { content: "Pasted." } }] });
    expect(await runCommand("GraphQL")).toMatchObject({ data: { createChatCompletion: { receipt: { cost: expect.any(String) } } } });
    expect(await runCode("Node", "node", ["--input-type=module", "-e"], process.cwd())).toContain("Pasted.");
    const prompts = app.upstream.requests.slice(seen).map((request) => bodyOf(request).messages.at(-1)?.content);
    expect(prompts).toEqual(Array(3).fill('It\'s $HOME\n\\ "and" `all`'));
  });

  it("keeps a partial answer after a lost connection, shows its cost after the reconnect, and retries it", async () => {
    const tab = await visit.context.newPage();
    const cuts: (() => Promise<void>)[] = [];
    await tab.routeWebSocket(/\/graphql$/, (socket) => {
      const server = socket.connectToServer();
      cuts.push(async () => {
        await server.close();
        await socket.close({ code: 4000 });
      });
    });
    await tab.goto(`${app.baseUrl}/dashboard/playground?model=acme/chat`);
    app.upstream.replyNext(sse([chatChunk({ content: "Half of it" })], { end: "hang" }), sse(chatChunks(["All of it"])));

    await tab.getByRole("textbox", { name: "Message" }).fill("Go on.");
    await tab.getByRole("button", { name: "Send" }).click();
    await tab.getByText("Half of it").waitFor();
    await Promise.all(cuts.splice(0).map((cut) => cut()));

    await tab.getByText("Answer interrupted").waitFor();
    await expect.poll(() => tab.locator("[data-cost]").getAttribute("data-cost")).toMatch(/^0\.0000/);
    await tab.getByRole("button", { name: "Try again" }).click();
    await tab.getByText("All of it").waitFor();
    await tab.getByRole("link", { name: "Receipt" }).click();
    await tab.getByRole("heading", { name: "Request to" }).waitFor();
    await tab.close();
  });

  it("generates and edits images, stores them in the browser, and stops a slow generation", async () => {
    const [png, reference] = await Promise.all([picture(96, 64, "png", "#3366cc"), picture(32, 32)]);
    await writeFile(join(app.dataDir, "FILE"), reference);
    app.upstream.replyNext(...Array.from({ length: 4 }, () => json(imagesObject([png, png]))));
    await visit.open("playground/image");

    await page.getByLabel("Prompt", { exact: true }).fill("A blue field");
    await page.getByLabel("Images", { exact: true }).fill("2");
    await page.getByText("About 0.08 credits").waitFor();
    await page.getByRole("button", { name: "Generate image" }).click();

    await expect.poll(() => page.getByRole("img", { name: "A blue field" }).count()).toBe(2);
    const width = () => page.evaluate<number>("document.querySelector('.gallery img').naturalWidth");
    await expect.poll(width).toBe(96);
    expect(await page.locator("[data-cost]").getAttribute("data-cost")).toBe("0.08");
    await page.locator("input[type=file]").setInputFiles({ name: "hat.png", mimeType: "image/png", buffer: reference });
    await page.getByRole("button", { name: "Edit images" }).click();
    await expect.poll(() => page.locator("[data-cost]").count()).toBe(2);
    expect(app.upstream.requests.at(-1)?.path).toContain("/images/edits");
    expect(await runCommand("curl")).toMatchObject({ data: [{ b64_json: expect.any(String) }, {}] });
    expect(await runCommand("GraphQL")).toMatchObject({ data: { editImage: { images: [{}, {}] } } });

    await page.getByLabel("URL of a reference image").fill("http://127.0.0.1/hat.png");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("button", { name: "Edit images" }).click();
    await page.getByRole("alert").getByText("The URL must be https.").waitFor();
    await screenshot(page, "playground-image");
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole("button", { name: "Remove http://127.0.0.1/hat.png" }).click();
    await page.getByLabel("Images", { exact: true }).fill("11");
    await page.getByRole("button", { name: "Edit images" }).click();
    await page.locator("input[aria-invalid=true]").waitFor();
    expect(await page.getByLabel("Images", { exact: true }).getAttribute("aria-invalid")).toBe("true");

    await page.reload();
    await page.getByRole("img", { name: "A blue field" }).first().waitFor();
    await expect.poll(width).toBe(96);
    await page.getByRole("button", { name: "New" }).click();
    await page.getByText("No images yet").waitFor();
    await page.goBack();
    await page.getByRole("img", { name: "A blue field" }).first().waitFor();
    app.upstream.replyNext(hang());
    const seen = app.upstream.requests.length;
    await page.getByRole("button", { name: "Edit images" }).click();
    await expect.poll(() => app.upstream.requests.length).toBe(seen + 1);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped.").waitFor();
  });

  it("generates a video as a job, restores it by its address, and plays it", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const videos = createFakeVideos({ clip: await readClip(3), progress: [40], gate });
    app.upstream.replyAlways(videos.reply);
    await visit.open("playground/video");

    await page.getByLabel("Prompt", { exact: true }).fill("A mill");
    await page.getByRole("button", { name: "Generate video" }).click();
    await page.getByText(/^Generating[:…]/).waitFor();
    await page.reload();
    await page.getByText(/^Generating[:…]/).waitFor();
    open();

    await page.getByText("Video ready").waitFor();
    await page.getByLabel("Generated video").waitFor();
    await expect
      .poll(() =>
        page.evaluate<boolean>("document.querySelector('video').readyState > 0 || document.querySelector('video').error !== null"),
      )
      .toBe(true);
    expect(await page.evaluate("document.querySelector('video').error?.message ?? null")).toBeNull();
    await expect.poll(() => page.locator("[data-cost]").getAttribute("data-cost")).toBe("0.3");
    await screenshot(page, "playground-video");
    app.upstream.replyAlways(null);
  });

  it("generates speech and music, and shows upstream errors with advice", async () => {
    await visit.open("playground/speech");
    const sound = raw(recording(1), { headers: { "content-type": "audio/wav" } });
    app.upstream.replyNext(sound, errorReply(500), sound);

    await page.getByLabel("Text", { exact: true }).fill("Hello there.");
    await page.getByRole("button", { name: "Generate speech" }).click();

    await page.getByRole("link", { name: "Download" }).waitFor();
    const seconds = () => page.evaluate<number>("document.querySelector('audio').duration");
    await expect.poll(seconds).toBeGreaterThan(0);
    await page.locator("[data-cost]").waitFor();
    await screenshot(page, "playground-speech");
    await page.reload();
    await expect.poll(seconds).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Generate speech" }).click();
    await page.getByRole("alert").getByText("choose another model").waitFor();
    expect(await page.getByLabel("Text", { exact: true }).inputValue()).toBe("Hello there.");

    await visit.open("playground/music");
    await page.getByLabel("Prompt", { exact: true }).fill("A slow waltz");
    await page.getByLabel("Duration (s)").fill("4");
    await page.getByRole("button", { name: "Generate music" }).click();
    await page.getByRole("link", { name: "Download" }).waitFor();
    await expect.poll(seconds).toBeGreaterThan(0);
    await screenshot(page, "playground-music");
  });

  it("transcribes a file and a recording", async () => {
    await visit.open("playground/transcription");
    app.upstream.replyNext(...["Wind turns wheels.", "Pasted.", "Beep."].map((text) => json({ text })));
    await writeFile(join(app.dataDir, "FILE"), recording(1));
    const transcript = page.getByRole("region", { name: "Transcript" });

    await page.locator("input[type=file]").setInputFiles({ name: "talk.wav", mimeType: "audio/wav", buffer: recording(1) });
    await page.getByText("About 0.0001 credits").waitFor();
    await page.getByRole("button", { name: "Transcribe" }).click();
    await transcript.getByText("Wind turns wheels.").waitFor();
    expect(Number(await page.locator("[data-cost]").getAttribute("data-cost"))).toBeGreaterThan(0);
    expect(await runCode("curl", "bash", ["-c"])).toContain("Pasted.");

    await page.getByRole("button", { name: "Record" }).click();
    await page.getByText("0:01").waitFor();
    await page.getByRole("button", { name: "Stop recording" }).click();
    await page.getByText("recording.webm").waitFor();
    await page.getByRole("button", { name: "Transcribe" }).click();
    await transcript.getByText("Beep.").waitFor();
    await screenshot(page, "playground-transcription");
  });

  it("talks to a realtime model, hears and reads its answer, and shows the cost while it runs and the charge at its end", async () => {
    await visit.open("playground/realtime?model=sandbox/realtime-paid");
    await page.getByRole("button", { name: "Start session" }).click();
    await page.getByRole("status").filter({ hasText: "Press Talk, and speak." }).waitFor();
    expect(await page.locator("[data-estimate]").getAttribute("data-estimate")).toBe("0");
    await page.getByRole("button", { name: "Talk" }).click();
    await page.getByText("0:01").waitFor();
    await page.getByRole("button", { name: "Send" }).click();
    const transcript = page.getByRole("log", { name: "Transcript" });
    await transcript.getByText("I heard you.").waitFor();
    await transcript.getByText(/^You spoke for [\d.]+ s\.$/).waitFor();
    await expect.poll(async () => Number(await page.locator("[data-estimate]").getAttribute("data-estimate"))).toBeGreaterThan(0);
    const estimate = await page.locator("[data-estimate]").getAttribute("data-estimate");
    await screenshot(page, "playground-realtime");
    expect(await seriousFindings(page)).toEqual([]);

    await page.getByRole("button", { name: "End session" }).click();
    await page.getByText(/^Charged/).waitFor();
    expect(await page.locator("[data-cost]").getAttribute("data-cost")).toBe(estimate);
    await page.getByRole("link", { name: "Receipt" }).click();
    await page.getByRole("heading", { level: 1, name: /^Request to Sandbox realtime/ }).waitFor();
  });

  it("says why there is no voice without a microphone, or in a session that is refused", async () => {
    const deaf = await launchBrowser();
    const other = await visitDashboard(deaf, app);
    await other.open("playground/realtime");
    await other.page.getByText("No microphone found.").waitFor();
    expect(await other.page.getByRole("button", { name: "Start session" }).count()).toBe(0);
    await screenshot(other.page, "playground-realtime-none");
    await deaf.close();

    // The upstream of the tests takes no WebSocket.
    const refused = await visitDashboard(browser, app);
    await refused.open("playground/realtime?model=acme/realtime");
    await refused.page.getByRole("button", { name: "Start session" }).click();
    await refused.page.getByRole("alert").getByText("The gateway refused the session.").waitFor();
    await refused.page.getByRole("link", { name: "View logs" }).click();
    await refused.page.getByText("acme/realtime").first().waitFor();
    await refused.context.close();
  });

  it("compares texts by their embeddings, and restores the comparison from the history", async () => {
    await visit.open("playground/embeddings");
    const data = [
      [1, 0],
      [0.6, 0.8],
    ].map((embedding, index) => ({ index, embedding }));
    app.upstream.replyNext(json({ data, usage: { prompt_tokens: 6, total_tokens: 6 } }));

    await page.getByLabel("Text 1", { exact: true }).fill("wind");
    await page.getByLabel("Text 2", { exact: true }).fill("a breeze");
    await page.getByRole("button", { name: "Compare texts" }).click();

    const row = page.getByRole("row", { name: "a breeze" });
    await expect.poll(() => row.getByRole("cell").allInnerTexts()).toEqual(["0.600", "1.000"]);
    await page.getByRole("button", { name: "New" }).click();
    await page.getByText("No comparison yet").waitFor();
    await page.getByRole("button", { name: "History" }).click();
    await page.getByRole("link", { name: "wind · a breeze" }).click();
    await expect.poll(() => row.getByRole("cell").allInnerTexts()).toEqual(["0.600", "1.000"]);
    await screenshot(page, "playground-embeddings");
  });
});

it("finds a JSON fault exactly where JSON.parse fails", () => {
  const valid = fc.json({ maxDepth: 3 });
  const cut = fc.tuple(valid, fc.nat(), fc.constantFrom("", "]", "}", '"', ",", ":", "1", "e", "\\", " "));
  const texts = fc.oneof(
    valid,
    cut.map(([text, at, put]) => text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + 1)),
  );
  const isJson = (text: string) => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  fc.assert(fc.property(texts, (text) => (findJsonFault(text) === null) === isJson(text)));
  expect(findJsonFault('{"a":\n  [1 2]}')).toEqual({ line: 2, column: 6, expected: '"," or "]"' });
});
