/** Lazy loading of code that survives a lost connection. */
import { Anchor, Text } from "@mantine/core";
import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { waitForRetry } from "../client/connection.js";

const LONGEST_WAIT_MS = 30_000;
/** Attempts while the browser is online. If all fail, the gateway was probably updated and lacks this file now. */
const ATTEMPTS_MAX = 5;

/** Retries until the code has loaded. Offline attempts do not count. Throws the last error after ATTEMPTS_MAX. */
export async function loadWithRetry<Module>(load: () => Promise<Module>): Promise<Module> {
  for (let attempts = 1; ; ) {
    try {
      return await load();
    } catch (error) {
      if (navigator.onLine && attempts++ >= ATTEMPTS_MAX) throw error;
      await waitForRetry(Math.min(LONGEST_WAIT_MS, 500 * 2 ** attempts));
    }
  }
}

/** Lazy component that renders `fallback` when its code cannot be loaded. The page around it stays. */
export function lazyWithRetry<Props extends object>(
  load: () => Promise<{ readonly default: ComponentType<Props> }>,
  fallback: ComponentType<Props> = Outdated,
): LazyExoticComponent<ComponentType<Props>> {
  return lazy(() => loadWithRetry(load).catch(() => ({ default: fallback })));
}

function Outdated() {
  return (
    <Text size="sm" role="alert">
      This part of the page could not be loaded: the gateway was updated.{" "}
      <Anchor component="button" type="button" onClick={() => location.reload()}>
        Reload page
      </Anchor>
    </Text>
  );
}
