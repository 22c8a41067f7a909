import { expect, it } from "vitest";
import { addressGroupOf } from "../../src/lib/client-address.js";

it.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["::FFFF:192.0.2.7", "192.0.2.7"],
  ["::ffff:c000:207", "192.0.2.7"],
  ["::ffff:192.0.2", "::ffff:192.0.2"],
  ["::ffff:192.0.2.7.9", "::ffff:192.0.2.7.9"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"],
  ["somewhere: else", "somewhere: else"],
])("counts %s as %s", (address, group) => {
  expect(addressGroupOf(address)).toBe(group);
});
