/** `npm start`: builds what changed since the last start and runs the server in this very process, which so gets its own signals. */
import module from "node:module";
import { join } from "node:path";
import { build, projectRoot, SERVER } from "./build.mjs";

await build();
// From Node 22 on, compiled code is cached beside the bundle, and removed with it. Without write access nothing is cached.
module.enableCompileCache?.(join(projectRoot, SERVER, ".compiled"));
await import("../dist/main.js");
