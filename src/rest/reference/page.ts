/** The page of the API reference: Swagger UI with the colours of this gateway, examples beside each operation, and the tab's key. */
import { GRAPHQL_EXAMPLES, WITHOUT_GRAPHQL } from "./graphql-examples.js";

export const START_SCRIPT = "start.js";
export const STYLES = "reference.css";

export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sluice: API reference</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/${STYLES}">
</head>
<body>
<div id="reference"><noscript>The description of this API is at <a href="/openapi.json">/openapi.json</a>.</noscript></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/${START_SCRIPT}"></script>
</body>
</html>
`;

/** Swagger UI's own colours are too pale for their text in either scheme. */
export const STYLE_SHEET = `body { margin: 0; background: #fff; }
html.dark-mode body { background: #1c2022; }
.swagger-ui .info .title small pre, .swagger-ui .info .title small.version-stamp pre { background: #39424e; color: #fff; }
.swagger-ui .info .title small, .swagger-ui .info .title small.version-stamp { background: #39424e; }
.swagger-ui .info a, .swagger-ui .url, .swagger-ui a.nostyle { color: #0b5cad; }
html.dark-mode .swagger-ui .info a, html.dark-mode .swagger-ui .url { color: #7cc0ff; }
.swagger-ui .btn.authorize { color: #116039; border-color: #116039; }
.swagger-ui .btn.authorize span { color: inherit; }
.swagger-ui .btn.authorize svg { fill: currentColor; }
html.dark-mode .swagger-ui .btn.authorize { color: #7fe0ae; border-color: #7fe0ae; }
.swagger-ui .opblock .opblock-summary-method { text-shadow: none; color: #fff; }
.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #0b5cad; }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #116039; }
.swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #a61b1b; }
.swagger-ui .opblock.opblock-put .opblock-summary-method { background: #8a4b00; }
.swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #0a5f56; }
.swagger-ui .json-schema-2020-12-expand-deep-button { color: #4a4a4a; }
html.dark-mode .swagger-ui .json-schema-2020-12-expand-deep-button { color: #d0d4d8; }
.swagger-ui .json-schema-2020-12__constraint { background: #7a4300; color: #fff; }
html.dark-mode .swagger-ui .header-col, html.dark-mode .swagger-ui .header-col * { color: #e4e6e8; }
.swagger-ui .parameter__in, .swagger-ui .prop-format { color: #4a4a4a; }
html.dark-mode .swagger-ui .parameter__in, html.dark-mode .swagger-ui .prop-format { color: #c6ccd2; }
.swagger-ui .microlight span[style*="211, 99, 99"] { color: #ffa3a3 !important; }
.swagger-ui .reference-examples { padding: 12px 20px; }
.swagger-ui .reference-tabs { display: flex; flex-wrap: wrap; gap: 4px; margin-bottom: 8px; }
.swagger-ui .reference-tabs button { padding: 4px 10px; border: 1px solid #6b7280; border-radius: 6px; background: none; color: inherit; font: inherit; font-size: 13px; cursor: pointer; }
.swagger-ui .reference-tabs button[aria-selected="true"] { background: #0b5cad; border-color: #0b5cad; color: #fff; }
.swagger-ui .reference-tabs .reference-copy { margin-left: auto; }
.swagger-ui .reference-examples { color: #1f2937; }
html.dark-mode .swagger-ui .reference-examples { color: #e4e6e8; }
.swagger-ui .reference-examples pre { margin: 0; padding: 12px; overflow: auto; background: #16202c; color: #f4f6f9; border-radius: 8px; font-size: 12px; white-space: pre; }
.swagger-ui .reference-examples pre.reference-note { white-space: normal; font-family: inherit; font-size: 14px; }
@media (max-width: 640px) {
  .swagger-ui .wrapper { padding: 0 10px; }
  .swagger-ui .info { margin: 24px 0; }
  .swagger-ui .info .title, .swagger-ui .info p, .swagger-ui .renderedMarkdown, .swagger-ui .opblock-summary-path { overflow-wrap: anywhere; word-break: break-word; }
  .swagger-ui .scheme-container .schemes { flex-wrap: wrap; gap: 12px; }
  .swagger-ui .scheme-container select, .swagger-ui .servers > label, .swagger-ui .servers select { min-width: 0; max-width: 100%; }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap; padding: 4px; }
  .swagger-ui .opblock .opblock-summary-control { flex-wrap: wrap; min-width: 0; }
  .swagger-ui .opblock .opblock-summary-path { max-width: 100%; padding: 4px 6px; }
  .swagger-ui .opblock .opblock-summary-description { width: 100%; padding: 0 6px 4px; }
  .swagger-ui .opblock .opblock-summary-method { min-width: 64px; }
  .swagger-ui h3.opblock-tag { flex-wrap: wrap; }
  .swagger-ui h3.opblock-tag small { flex: 1 1 100%; padding: 0; }
  .swagger-ui .table-container, .swagger-ui .responses-inner, .swagger-ui .model-box, .swagger-ui .models { max-width: 100%; overflow-x: auto; }
  .swagger-ui .opblock .opblock-section-header { flex-wrap: wrap; }
  .swagger-ui table.parameters > thead, .swagger-ui .response-col_links { display: none; }
  .swagger-ui table.parameters, .swagger-ui table.parameters > tbody, .swagger-ui table.parameters > tbody > tr, .swagger-ui table.parameters > tbody > tr > td { display: block; width: auto; max-width: 100%; padding-bottom: 0; }
  .swagger-ui .parameters-col_description input[type="text"], .swagger-ui .parameters-col_description select, .swagger-ui textarea { width: 100%; max-width: 100%; min-width: 0; }
  .swagger-ui .dialog-ux .modal-ux { min-width: 0; width: calc(100vw - 24px); }
}
`;

const SDK_CALLS = {
  createChatCompletion: "chat.completions.create",
  createCompletion: "completions.create",
  createResponse: "responses.create",
  compactResponse: "responses.compact",
  countResponseTokens: "responses.inputTokens.count",
  createEmbeddings: "embeddings.create",
  createImage: "images.generate",
  createSpeech: "audio.speech.create",
  createModeration: "moderations.create",
  listOpenAiModels: "models.list",
  createRealtimeClientSecret: "realtime.clientSecrets.create",
  createVideo: "videos.create",
};

/** Calls of the OpenAI SDK whose arguments are not the body. */
const SDK_WHOLE_CALLS = {
  getOpenAiModel: 'models.retrieve("sandbox/text")',
  editImage: 'images.edit({ image: fs.createReadStream("FILE"), prompt: "At night" })',
  createImageVariation: 'images.createVariation({ image: fs.createReadStream("FILE") })',
  createTranslation: 'audio.translations.create({ file: fs.createReadStream("FILE"), model: "MODEL" })',
  createTranscription: 'audio.transcriptions.create({ file: fs.createReadStream("FILE"), model: "MODEL" })',
  retrieveVideo: 'videos.retrieve("ID")',
  deleteVideo: 'videos.delete("ID")',
  downloadVideoContent: 'videos.downloadContent("ID")',
};

/** A separate file, as the page's policy forbids inline scripts. Empty form fields are not sent. */
export const START = `"use strict";
const GRAPHQL = new Map(${JSON.stringify([...GRAPHQL_EXAMPLES])});
const WITHOUT_GRAPHQL = new Map(${JSON.stringify([...WITHOUT_GRAPHQL])});
const SDK = new Map(${JSON.stringify(Object.entries(SDK_CALLS))});
const SDK_WHOLE = new Map(${JSON.stringify(Object.entries(SDK_WHOLE_CALLS))});
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
// The key of this tab, as the GraphQL explorer keeps it.
const tabKey = () => sessionStorage.getItem("sluice:api-key") ?? "";
const quoted = (text) => "'" + text.replaceAll("'", "'\\\\''") + "'";

function examplesOf(operation, path, method) {
  const values = new Map((operation.parameters ?? []).filter((one) => one.in === "path").map((one) => [one.name, one.example ?? one.schema?.example]));
  const address = path.replace(/\\{([^}]+)\\}/g, (whole, name) => (values.get(name) === undefined ? whole : encodeURIComponent(values.get(name))));
  const json = operation.requestBody?.content?.["application/json"];
  const body = json?.example ?? Object.values(json?.examples ?? {})[0]?.value;
  const lines = ["curl " + (method === "get" ? "" : "-X " + method.toUpperCase() + " ") + quoted(location.origin + address), '  -H "Authorization: Bearer $SLUICE_API_KEY"'];
  if (body !== undefined) lines.push('  -H "Content-Type: application/json"', "  -d " + quoted(JSON.stringify(body)));
  else if (operation.requestBody?.content?.["multipart/form-data"]) lines.push("  -F file=@FILE");
  const examples = [["curl", lines.join(" \\\\\\n")]];
  const call = SDK.get(operation.operationId);
  const whole = SDK_WHOLE.get(operation.operationId);
  if (whole !== undefined) examples.push(["OpenAI SDK", (whole.includes("fs.") ? 'import fs from "node:fs";\\n' : "") + 'import OpenAI from "openai";\\n\\nconst client = new OpenAI({ baseURL: "' + location.origin + '/v1", apiKey: "YOUR_API_KEY" });\\nconst answer = await client.' + whole + ";"]);
  if (call !== undefined) examples.push(["OpenAI SDK", 'import OpenAI from "openai";\\n\\nconst client = new OpenAI({ baseURL: "' + location.origin + '/v1", apiKey: "YOUR_API_KEY" });\\nconst answer = await client.' + call + "(" + (body === undefined ? "" : JSON.stringify(body, null, 2)) + ");"]);
  const document = GRAPHQL.get(operation.operationId);
  if (document !== undefined) examples.push(["GraphQL", document]);
  else examples.push(["GraphQL", "This operation is of REST alone. " + (WITHOUT_GRAPHQL.get(operation.operationId) ?? ""), true]);
  return examples;
}

/** The tab that was chosen last, for operations that are opened later. */
let preferred = "curl";

const plugin = ({ React: { createElement: h, useState } }) => {
  function Examples({ examples }) {
    const [chosen, choose] = useState(preferred);
    const shown = examples.find(([title]) => title === chosen) ?? examples[0];
    const select = (title) => {
      preferred = title;
      choose(title);
    };
    const move = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const [title] = examples[(examples.indexOf(shown) + step + examples.length) % examples.length];
      select(title);
      event.currentTarget.querySelector('[data-title="' + title + '"]')?.focus();
    };
    const tabs = examples.map(([title]) => {
      const isShown = title === shown[0];
      return h("button", { key: title, type: "button", role: "tab", "data-title": title, "aria-selected": isShown, tabIndex: isShown ? 0 : -1, onClick: () => select(title) }, title);
    });
    const copy = h("button", { type: "button", className: "reference-copy", onClick: () => void navigator.clipboard.writeText(shown[1]) }, "Copy");
    return h("div", { className: "reference-examples" },
      h("div", { className: "reference-tabs" }, h("div", { role: "tablist", "aria-label": "Examples", style: { display: "contents" }, onKeyDown: move }, tabs), shown[2] ? null : copy),
      h("pre", { role: "tabpanel", "aria-label": shown[0] + " example", tabIndex: 0, className: shown[2] ? "reference-note" : undefined }, shown[1]));
  }
  return {
  components: {
    // A link inside the button of the operation cannot be reached by a screen reader.
    DeepLink: ({ text }) => h("span", null, text),
  },
  wrapComponents: {
    parameters: (Original, system) => (props) => {
      const [path, method] = props.pathMethod;
      const operation = system.specSelectors.specJson().getIn(["paths", path, method])?.toJS();
      const examples = operation ? examplesOf(operation, path, method) : [];
      return h("div", null, examples.length > 0 ? h(Examples, { examples }) : null, h(Original, props));
    },
  },
  };
};

/** Swagger UI leaves names and levels out that assistive technology needs. */
function complete() {
  document.querySelector("#servers:not([aria-label])")?.setAttribute("aria-label", "Server");
  for (const choice of document.querySelectorAll(".parameters-col_description select:not([aria-label])"))
    choice.setAttribute("aria-label", choice.closest("tr")?.dataset.paramName ?? "Value");
  for (const scrolled of document.querySelectorAll(".microlight:not([tabindex])")) scrolled.tabIndex = 0;
  for (const [selector, name] of [[".information-container", "About"], [".scheme-container", "Server and key"]])
    for (const part of document.querySelectorAll(selector + ":not([role])")) {
      part.setAttribute("role", "region");
      part.setAttribute("aria-label", name);
    }
  for (const [selector, level] of [["h2.title", "1"], ["h3.opblock-tag", "2"], [".models > h4", "2"]])
    for (const heading of document.querySelectorAll(selector + ":not([aria-level])")) {
      heading.setAttribute("role", "heading");
      heading.setAttribute("aria-level", level);
    }
}

window.onload = () => {
  new MutationObserver(complete).observe(document.getElementById("reference"), { childList: true, subtree: true });
  const ui = SwaggerUIBundle({
    url: "/openapi.json",
    dom_id: "#reference",
    deepLinking: true,
    persistAuthorization: false,
    plugins: [plugin],
    onComplete: () => {
      if (tabKey() !== "") ui.preauthorizeApiKey("bearer", tabKey());
    },
    requestInterceptor: (request) => {
      if (request.body instanceof FormData) for (const [name, value] of [...request.body]) if (value === "") request.body.delete(name);
      return request;
    },
  });
};
`;
