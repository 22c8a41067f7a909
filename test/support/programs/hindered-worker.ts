/** `hindered-worker <seat>`: a worker that tells whoever connects which it is, and lets its event loop hang when it is asked to. */
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
  // One that reads nothing never sees the end of what it is sent.
  socket.on("error", () => undefined).resume();
  socket.end(String(link.number));
});
