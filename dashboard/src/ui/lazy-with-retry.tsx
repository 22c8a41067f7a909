/** Code that comes when it is first needed. A connection that is lost meanwhile delays it, and breaks nothing of what is shown. */
import { Anchor, Text } from "@mantine/core";
import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import { waitForRetry } from "../client/connection.js";

const LONGEST_WAIT_MS = 30_000;
/** So often it is tried while the browser has a connection: then the gateway has another version, which lacks this file. */
const TRIES = 5;

/** Tries again until it has come. Throws what the last of TRIES failed with. */
export async function loadWithRetry<Module>(load: () => Promise<Module>): Promise<Module> {
  for (let tries = 1; ; ) {
    try {
      return await load();
    } catch (error) {
      if (navigator.onLine && tries++ >= TRIES) throw error;
      await waitForRetry(Math.min(LONGEST_WAIT_MS, 500 * 2 ** tries));
    }
  }
}

/** A component whose code comes later. One whose code is gone is `orElse`, and the page around it stays. */
export function lazyWithRetry<Props extends object>(
  load: () => Promise<{ readonly default: ComponentType<Props> }>,
  orElse: ComponentType<Props> = Outdated,
): LazyExoticComponent<ComponentType<Props>> {
  return lazy(() => loadWithRetry(load).catch(() => ({ default: orElse })));
}

function Outdated() {
  return (
    <Text size="sm" role="alert">
      This part of the page is of an older version than the gateway.{" "}
      <Anchor component="button" type="button" onClick={() => location.reload()}>
        Load the page again
      </Anchor>
    </Text>
  );
}
