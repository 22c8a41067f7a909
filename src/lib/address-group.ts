/** Whom an address stands for where requests are counted. */
import ipaddr from "ipaddr.js";

/**
 * An IPv4 address as it is, also when it is written as IPv6. Of an IPv6 address the first 64 bits: one customer of a provider
 * has at least that many to choose from. Text that is no address stands for itself.
 */
export function addressGroupOf(address: string): string {
  if (!address.includes(":")) return address;
  if (!ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}
