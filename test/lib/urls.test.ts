import { expect, it } from "vitest";
import { loopbackUrl } from "../../src/lib/urls.js";

it.each([
  ["127.0.0.1", "http://127.0.0.1:4000"],
  ["0.0.0.0", "http://127.0.0.1:4000"],
  ["::", "http://127.0.0.1:4000"],
  ["::1", "http://[::1]:4000"],
  ["192.168.1.7", "http://192.168.1.7:4000"],
  ["localhost", "http://localhost:4000"],
])("reaches a server at %s as %s", (address, url) => {
  expect(loopbackUrl(address, 4000)).toBe(url);
});
