/** `npm start`: builds what changed since the last start and runs the server in this very process, which so gets its own signals. */
import module from "node:module";
import { join } from "node:path";
import { build, projectRoot, SERVER } from "./build.mjs";

await build();
// From Node 22 on what is compiled is kept beside the bundle, and goes with it. Where that folder cannot be written, nothing is kept.
module.enableCompileCache?.(join(projectRoot, SERVER, ".compiled"));
await import("../dist/main.js");
