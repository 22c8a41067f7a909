/**
 * The dashboard: one page for every address below /dashboard, which loads the build of `dashboard/` and uses GraphQL with the session's
 * cookie (docs/dashboard.md). It is on the sign-in host, where sessions count.
 */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { raw } from "hono/html";
import * as z from "zod";
import { notFound } from "../../errors.js";
import { type Asset, builtAsset, sendAsset } from "../../http/built-assets.js";
import type { AnswerType } from "../../lib/content-types.js";
import { chosenTokens, MARK_STYLE, MARK_URL, SYSTEM_TOKENS } from "../../lib/design-tokens.js";
import { openEndpoint } from "../open-endpoint.js";
import type { Route } from "../route.js";
import { html } from "./html.js";
import type { WholePage } from "./page.js";
import type { PageEndpoint } from "./page-endpoint.js";
import { HOME_PATH } from "./return-to.js";
import type { GatewayInfo } from "./start.js";

const SCHEME_ATTRIBUTE = "data-mantine-color-scheme";

/** Addresses of former account pages, each with its successor below the dashboard's path. */
const FORMER_PAGES: ReadonlyMap<string, string> = new Map([
  ["/home", ""],
  ["/home/keys", "/keys"],
  ["/home/keys/new", "/keys?new"],
  ["/home/keys/made", "/keys"],
  ["/sessions", "/account/sessions"],
  ["/password", "/account"],
]);

/** Where the build is. */
const BUILT = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "../../../dashboard/dist/" : "./dashboard/", import.meta.url));
const ENTRY = "src/main.tsx";
/** Sends the first queries. */
const EARLY = "src/early.ts";

const TYPES: ReadonlyMap<string, AnswerType> = new Map([
  [".js", "text/javascript; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
]);

/** Colours, and an outline of the frame until the code has loaded. */
const STYLE = `${SYSTEM_TOKENS}
${chosenTokens(SCHEME_ATTRIBUTE)}
${MARK_STYLE}
body { margin: 0; background: var(--paper); color: var(--ink); font-family: var(--font); }
.frame-top { box-sizing: border-box; height: var(--frame-top); display: flex; align-items: center; gap: 0.5rem; padding: 0 1rem; background: var(--card); border-bottom: 1px solid var(--line); font-weight: 650; }
.frame-side { position: fixed; box-sizing: border-box; top: var(--frame-top); bottom: 0; width: var(--frame-side); background: var(--card); border-right: 1px solid var(--line); }
@media (max-width: 48em) { .frame-side { display: none; } .frame-top .mark { margin-left: 2.7rem; } }`;

/** A chunk in Vite's manifest: its file, style sheets and static imports. */
const chunk = z.object({ file: z.string(), css: z.array(z.string()).default([]), imports: z.array(z.string()).default([]) });
const manifestFile = z.record(z.string(), chunk);
type Chunk = z.infer<typeof chunk>;

interface Build {
  readonly chunks: ReadonlyMap<string, Chunk>;
  readonly assets: ReadonlyMap<string, Asset>;
}

export class Dashboard {
  #build: Promise<Build> | null = null;

  constructor(private readonly gateway: GatewayInfo) {}

  /** `base`: prefix of all page paths. `path`: of the page below the dashboard's; its code is preloaded. */
  async page(base: string, path = ""): Promise<WholePage> {
    const { chunks } = await this.#load();
    const nonce = randomBytes(16).toString("base64");
    const { baseUrl, mediaUrl } = this.gateway.addresses();
    const assets = `${base}${HOME_PATH}/`;
    const { scripts, styles, early, entry } = neededFor(chunks, path);
    const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta property="csp-nonce" nonce="${nonce}">
<title>Sluice</title>
<link rel="icon" href="${MARK_URL}">
<script type="module" src="${assets}${early}"></script>
<style nonce="${nonce}">${raw(STYLE)}</style>
${styles.map((file) => html`<link rel="stylesheet" href="${assets}${file}">`)}
${scripts.map((file) => html`<link rel="modulepreload" href="${assets}${file}">`)}
<script type="module" src="${assets}${entry}"></script>
</head>
<body>
<div id="dashboard" data-base="${base}" data-gateway="${baseUrl}"${this.gateway.hasGraphiQL ? html` data-graphiql` : ""}>
<div class="frame" aria-hidden="true"><div class="frame-top"><span class="mark"></span>Sluice</div><div class="frame-side"></div></div>
</div>
<noscript><p>The dashboard needs JavaScript. Turn it on in your browser.</p></noscript>
</body>
</html>
`;
    return { document, policy: policyOf(nonce, [originOf(mediaUrl), this.gateway.blobOrigin]) };
  }

  /** Rejects with NOT_FOUND for a file that is not part of this build. */
  async asset(name: string): Promise<Asset> {
    const { assets } = await this.#load();
    const asset = assets.get(name);
    if (!asset) throw notFound("path");
    return asset;
  }

  #load(): Promise<Build> {
    this.#build ??= readBuild().catch((error: unknown) => {
      this.#build = null;
      throw error;
    });
    return this.#build;
  }
}

export function addDashboardRoutes(route: Route, page: PageEndpoint, dashboard: Dashboard): void {
  const show = page({
    isSignedIn: true,
    hasForms: false,
    handler: (_ctx, { base, exchange }) => dashboard.page(base, exchange.path.slice(base.length + HOME_PATH.length + 1)),
  });
  route(HOME_PATH, { GET: show });
  route(`${HOME_PATH}/assets/:name`, {
    GET: openEndpoint({
      id: null,
      handler: async (exchange) => {
        const name = exchange.parameter("name");
        await sendAsset(exchange, name, await dashboard.asset(name));
      },
    }),
  });
  route(`${HOME_PATH}/*page`, { GET: show });
  for (const [path, successor] of FORMER_PAGES)
    route(path, { GET: page({ hasForms: false, handler: (_ctx, { base }) => ({ redirectTo: base + HOME_PATH + successor }) }) });
}

async function readBuild(): Promise<Build> {
  const manifest = manifestFile.parse(JSON.parse(await readFile(`${BUILT}manifest.json`, "utf8")));
  const chunks = new Map(Object.entries(manifest));
  const files = [...chunks.values()].flatMap(({ file, css }) => [file, ...css]);
  const assets = files.flatMap((file) => {
    const type = TYPES.get(extname(file));
    return type === undefined ? [] : [[file.slice("assets/".length), builtAsset(BUILT + file, type)] as const];
  });
  return { chunks, assets: new Map(assets) };
}

/** The code of the frame and of the requested page, with static imports, to load in parallel. */
function neededFor(chunks: Build["chunks"], path: string) {
  const early = chunks.get(EARLY)?.file;
  const entry = chunks.get(ENTRY)?.file;
  if (early === undefined || entry === undefined) throw new Error("The dashboard's build has no entry.");
  const [section = ""] = path.split("/", 1);
  const needed = new Map<string, Chunk>();
  const add = (name: string) => {
    const found = chunks.get(name);
    if (!found || needed.has(name)) return;
    needed.set(name, found);
    for (const other of found.imports) add(other);
  };
  add(EARLY);
  add(ENTRY);
  add(`src/pages/${section === "" ? "overview" : section}/page.tsx`);
  const all = [...needed.values()];
  return {
    ...{ early, entry },
    scripts: all.map(({ file }) => file).filter((file) => file !== early && file !== entry),
    styles: [...new Set(all.flatMap(({ css }) => css))],
  };
}

/** Only built scripts may run; connections only to this origin and to file storage. */
function policyOf(nonce: string, fileOrigins: readonly (string | null)[]): string {
  const media = [...new Set(fileOrigins)].map((origin) => (origin === null ? "" : ` ${origin}`)).join("");
  return [
    "default-src 'none'",
    "script-src 'self'",
    // The component library writes style elements, which have the nonce.
    `style-src 'self' 'nonce-${nonce}'`,
    `img-src 'self' data: blob:${media}`,
    `media-src 'self' data: blob:${media}`,
    `connect-src 'self'${media}`,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function originOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}
