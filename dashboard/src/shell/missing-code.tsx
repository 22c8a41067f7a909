/**
 * Shown instead of a page whose code did not come. After an update of the gateway it is there no more under its old name: the page is
 * loaded anew, once. Without a connection it comes as soon as there is one.
 */
import { Button, Group, Text } from "@mantine/core";
import { useCallback, useEffect, useState } from "react";
import { onReconnect } from "../client/connection.js";
import { Page } from "../ui/page.js";
import { Loading } from "../ui/states.js";

export class MissingCode extends Error {}

/** Two versions of the gateway beside each other would send a browser back and forth. */
const RELOADS_APART_MS = 60_000;
const RELOADED_AT = "sluice-reloaded-at";

type Found = "looking" | "away" | "broken";

export function PageNotLoaded() {
  const [found, setFound] = useState<Found>("looking");
  const look = useCallback(async (isAsked: boolean) => {
    const newest = await newestEntry();
    if (newest === null) setFound("away");
    else if (isAsked || (newest !== ownEntry() && isLongAgo())) reload();
    else setFound("broken");
  }, []);
  useEffect(() => {
    const lookAgain = () => void look(true);
    void look(false);
    addEventListener("online", lookAgain);
    const forget = onReconnect(lookAgain);
    return () => {
      removeEventListener("online", lookAgain);
      forget();
    };
  }, [look]);
  if (found === "looking") return <Loading rows={6} />;
  const isAway = found === "away";
  return (
    <Page title="This page could not be loaded">
      <div role="alert">
        <Text mb="md">
          {isAway
            ? "The gateway cannot be reached. The page is loaded as soon as there is a connection."
            : "The gateway is there, but this page’s code has not come. If trying again does not help, tell whoever runs the gateway."}
        </Text>
        <Group>
          <Button variant="default" onClick={() => void look(true)}>
            Try again
          </Button>
        </Group>
      </div>
    </Page>
  );
}

/** The script that the gateway starts the dashboard with now; null when it is not reached. */
async function newestEntry(): Promise<string | null> {
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    return entryIn(new DOMParser().parseFromString(await response.text(), "text/html"));
  } catch {
    return null;
  }
}

const ownEntry = () => entryIn(document);

function entryIn(page: Document): string {
  return page.querySelector('script[type="module"][src]')?.getAttribute("src") ?? "";
}

function isLongAgo(): boolean {
  return Date.now() - Number(sessionStorage.getItem(RELOADED_AT)) > RELOADS_APART_MS;
}

function reload(): void {
  sessionStorage.setItem(RELOADED_AT, String(Date.now()));
  location.reload();
}
