/** `npm start`: builds what changed since the last start and runs the server in this very process, which so gets its own signals. */
import { build } from "./build.mjs";

await build();
await import("../dist/main.js");
