/** `hindered-worker <seat>`: a worker that sends its number to each client, and lets its event loop hang on request. */
import { PrimaryLink } from "../../../src/workers/primary-link.js";

const link = new PrimaryLink(JSON.parse(process.argv[2] ?? ""), {
  onLeaving: () => undefined,
  onDrain: () => process.exit(0),
  onLost: () => process.exit(0),
});
link.answer("who", async () => link.number);
link.answer("hang", () => {
  for (;;);
});
link.serve(null, (socket) => {
  // A socket that is never read does not see the end of its peer.
  socket.on("error", () => undefined).resume();
  socket.end(String(link.number));
});
