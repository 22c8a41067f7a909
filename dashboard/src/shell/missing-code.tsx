/**
 * Fallback for a page whose code did not load. An update of the gateway renames the files, so the page is reloaded once. Without a
 * connection it loads when the connection is back.
 */
import { Button, Group, Text } from "@mantine/core";
import { useCallback, useEffect, useState } from "react";
import { onReconnect, waitForRetry } from "../client/connection.js";
import { Page } from "../ui/page.js";
import { Loading } from "../ui/states.js";

export class MissingCode extends Error {}

/** Shortest time between reloads. Two versions of the gateway behind one load balancer would otherwise cause a reload loop. */
const RELOAD_INTERVAL_MS = 60_000;
/** Waits between attempts while the gateway cannot be reached: the first, doubled up to the last. */
const AWAY_RETRY_MIN_MS = 1000;
const AWAY_RETRY_MAX_MS = 30_000;
const RELOADED_AT = "sluice-reloaded-at";

type State = "checking" | "away" | "broken";

export function PageNotLoaded() {
  const [state, setState] = useState<State>("checking");
  const check = useCallback(async (isRetry: boolean) => {
    const newest = await newestEntry();
    if (newest === null) setState("away");
    else if (isRetry || (newest !== ownEntry() && mayReload())) reload();
    else setState("broken");
  }, []);
  useEffect(() => {
    const retry = () => void check(true);
    void check(false);
    addEventListener("online", retry);
    const forget = onReconnect(retry);
    return () => {
      removeEventListener("online", retry);
      forget();
    };
  }, [check]);
  useEffect(() => {
    if (state !== "away") return;
    const left = new AbortController();
    void reloadWhenReached(left.signal);
    return () => left.abort();
  }, [state]);
  if (state === "checking") return <Loading rows={6} />;
  const isAway = state === "away";
  return (
    <Page title="This page could not be loaded">
      <div role="alert">
        <Text mb="md">
          {isAway
            ? "Cannot reach the gateway. The page loads as soon as the connection is back."
            : "The gateway responds, but the code of this page is missing. If trying again does not help, contact the operator."}
        </Text>
        <Group>
          <Button variant="default" onClick={() => void check(true)}>
            Try again
          </Button>
        </Group>
      </div>
    </Page>
  );
}

/** A browser says that it is online before its requests succeed, so the event alone is no reason to stop asking. */
async function reloadWhenReached(left: AbortSignal): Promise<void> {
  for (let waitMs = AWAY_RETRY_MIN_MS; !left.aborted; waitMs = Math.min(2 * waitMs, AWAY_RETRY_MAX_MS)) {
    await waitForRetry(waitMs);
    if (!left.aborted && (await newestEntry()) !== null) return reload();
  }
}

/** Path of the entry script that the gateway serves now. Null when the gateway is unreachable, starting or stopping. */
async function newestEntry(): Promise<string | null> {
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!response.ok) return null;
    return entryIn(new DOMParser().parseFromString(await response.text(), "text/html"));
  } catch {
    return null;
  }
}

const ownEntry = () => entryIn(document);

function entryIn(page: Document): string {
  return page.querySelector('script[type="module"][src]')?.getAttribute("src") ?? "";
}

function mayReload(): boolean {
  return Date.now() - Number(sessionStorage.getItem(RELOADED_AT)) > RELOAD_INTERVAL_MS;
}

function reload(): void {
  sessionStorage.setItem(RELOADED_AT, String(Date.now()));
  location.reload();
}
