/** Finds the vendor keys of a caller when its credential is read. Implemented by `vendor-keys`. */
import type { UsableVendorKey } from "../../context.js";

export interface VendorKeyCaller {
  /** The API key and its ancestors; empty: a session. */
  readonly apiKeyIds: readonly string[];
  /** A publishable key, which is in the code of web pages: it uses only vendor keys that name it. */
  readonly isPublic: boolean;
}

export interface VendorKeyFinder {
  /**
   * Those that are enabled and that the caller's calls use. Undefined when there are none, so that a caller without them costs nothing.
   */
  usableBy(accountId: string, caller: VendorKeyCaller): Promise<readonly UsableVendorKey[] | undefined>;
}

export const NO_VENDOR_KEYS: VendorKeyFinder = { usableBy: () => Promise.resolve(undefined) };
