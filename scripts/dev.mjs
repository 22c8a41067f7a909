/**
 * `npm run dev`: the gateway at one address, rebuilt and restarted when its sources change, with the dashboard served by Vite and reloaded
 * in the page. Vite listens at the address and passes every request on to the gateway but those for the dashboard's modules.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { createServer as createNetServer } from "node:net";
import { join } from "node:path";
import { createServer } from "vite";
import { build, CLIENT, DASHBOARD, DOCUMENTS, EXPLORER, projectRoot, watchBundle } from "./build.mjs";

const path = (...parts) => join(projectRoot, ...parts);

/** Prefix of the dashboard's modules. The gateway has no path like it. */
const MODULES = "/@dashboard/";
const BUNDLE = path("node_modules/.cache/sluice/dev");
const HOST = "localhost";
const RESTART_PAUSE_MS = 100;

/** urql's development build looks into documents, and the dashboard's are digests alone. */
const documentsByDigest = {
  name: "documents-by-digest",
  transform: (code, id) => (/@urql[/+]core/.test(id) ? code.replaceAll("process.env.NODE_ENV", '"production"') : null),
};

if (existsSync(path(".env"))) process.loadEnvFile(path(".env"));
const port = Number(process.env.PORT || 4000);

// The gateway takes the list of the dashboard's files from a build, any build.
const outputs = [CLIENT, EXPLORER, DOCUMENTS, ...(existsSync(path(DASHBOARD, "manifest.json")) ? [] : [DASHBOARD])];
await build({ outputs });

rmSync(BUNDLE, { recursive: true, force: true });
mkdirSync(BUNDLE, { recursive: true });
symlinkSync(path(EXPLORER), join(BUNDLE, "explorer"));
symlinkSync(path(DASHBOARD), join(BUNDLE, "dashboard"));

const gatewayPort = await freePort();
const gateway = createGateway();
await serveFront();
await watchBundle({
  entries: { main: path("src/main.ts"), "gateway-worker": path("src/workers/gateway-worker.ts") },
  outdir: BUNDLE,
  onBuilt: () => gateway.restartSoon(),
});
// Vite's own handler would exit before the gateway has stopped.
process.removeAllListeners("SIGTERM");
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void gateway.stop().then(() => process.exit(0)));

/** The gateway's process, which is started by the first bundle. */
function createGateway() {
  let child = null;
  let timer = null;
  let restarting = Promise.resolve();

  const stop = async () => {
    const running = child;
    if (running === null || running.exitCode !== null || running.signalCode !== null) return;
    const exited = new Promise((resolve) => running.once("exit", resolve));
    running.kill("SIGTERM");
    await exited;
  };
  const restart = async () => {
    // The small bundles are there before the large one.
    if (!existsSync(join(BUNDLE, "main.js"))) return;
    await stop();
    child = spawn(process.execPath, ["--enable-source-maps", "--max-semi-space-size=32", join(BUNDLE, "main.js")], {
      cwd: projectRoot,
      stdio: "inherit",
      env: { BASE_URL: `http://${HOST}:${port}`, ...process.env, HOST: "127.0.0.1", PORT: String(gatewayPort) },
    });
  };
  // One change may end several bundles.
  const restartSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      restarting = restarting.then(restart);
    }, RESTART_PAUSE_MS);
  };
  return { stop, restartSoon };
}

async function serveFront() {
  const target = `http://127.0.0.1:${gatewayPort}`;
  const vite = await createServer({
    root: path("dashboard"),
    configFile: path("dashboard/vite.config.ts"),
    base: MODULES,
    appType: "custom",
    clearScreen: false,
    optimizeDeps: { rolldownOptions: { plugins: [documentsByDigest] } },
    server: {
      host: HOST,
      port,
      strictPort: true,
      proxy: { [`^(?!${MODULES})`]: { target, ws: true, xfwd: true, selfHandleResponse: true, configure } },
    },
  });
  await vite.listen();

  /** Passes answers on; a page of the dashboard loads Vite's modules instead of the build. */
  function configure(proxy) {
    proxy.on("proxyReq", (asked) => asked.removeHeader("accept-encoding"));
    proxy.on("error", (error, _request, response) => {
      if (!("writeHead" in response) || response.headersSent) return response.destroy?.();
      response.writeHead(503, { "content-type": "text/plain", "retry-after": "1" }).end(`The gateway is not listening: ${error.message}\n`);
    });
    proxy.on("proxyRes", (answer, request, response) => {
      const isPage = /^text\/html/.test(answer.headers["content-type"] ?? "") && /^\/dashboard(?:[/?]|$)/.test(request.url ?? "");
      if (!isPage) {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
        return;
      }
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () => void sendPage(request, response, answer, Buffer.concat(chunks).toString()));
    });
  }

  async function sendPage(request, response, answer, page) {
    const ofVite = page
      .replace(/<link rel="(?:stylesheet|modulepreload)"[^>]*>|<script [^>]*\/early-[^>]*><\/script>/g, "")
      .replace(/(<script type="module" src=")[^"]*(")/, "$1/src/main.tsx$2");
    const html = await vite.transformIndexHtml(request.url, ofVite);
    // Vite's client and React's refresh are inline, which the page's policy forbids.
    const { "content-security-policy": _policy, "content-length": _length, ...headers } = answer.headers;
    response.writeHead(answer.statusCode, { ...headers, "cache-control": "no-store" }).end(html);
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createNetServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port: free } = server.address();
      server.close(() => resolve(free));
    });
  });
}
