/** Playground: every type of generation, charged to the account's balance. */
import { type ComponentType, Suspense, useEffect, useRef } from "react";
import { Link, useParams } from "react-router";
import { PlaygroundModelsDocument } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { lazyWithRetry } from "../../ui/lazy-with-retry.js";
import { Page } from "../../ui/page.js";
import { Empty, Loading } from "../../ui/states.js";
import Chat from "./chat/chat.js";
import { KINDS } from "./kinds.js";
import { filterOf } from "./models.js";
import "./playground.css";

const PARTS: ReadonlyMap<string, ComponentType> = new Map<string, ComponentType>([
  ["chat", Chat],
  ["image", lazyWithRetry(() => import("./image.js"))],
  ["video", lazyWithRetry(() => import("./video.js"))],
  ["speech", lazyWithRetry(() => import("./speech.js"))],
  ["music", lazyWithRetry(() => import("./music.js"))],
  ["transcription", lazyWithRetry(() => import("./transcription.js"))],
  ["realtime", lazyWithRetry(() => import("./realtime/realtime.js"))],
  ["embeddings", lazyWithRetry(() => import("./embeddings.js"))],
]);

export const start = ({ params }: { readonly params: Readonly<Record<string, string | undefined>> }) => {
  const kind = KINDS.find(({ name }) => name === (params.kind ?? "chat"));
  return kind && prefetch(PlaygroundModelsDocument, { filter: filterOf(kind.modality) });
};

export function Component() {
  const { kind: name = "chat" } = useParams();
  const kind = KINDS.find((other) => other.name === name);
  const Part = PARTS.get(name);
  const kinds = useRef<HTMLElement>(null);
  // On a phone the navigation is wider than the screen.
  useEffect(() => {
    kinds.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [name]);
  return (
    <Page title="Playground" tabTitle={kind ? `${kind.label} · Playground` : "Playground"}>
      <nav ref={kinds} className="kinds" aria-label="Types of generation">
        {KINDS.map((other) => (
          <Link
            key={other.name}
            to={addressOf(other.name === "chat" ? "playground" : `playground/${other.name}`)}
            aria-current={other.name === name ? "page" : undefined}
          >
            {other.label}
          </Link>
        ))}
      </nav>
      {Part ? (
        <Suspense fallback={<Loading rows={6} />}>
          <Part key={name} />
        </Suspense>
      ) : (
        <Empty title="Unknown type of generation">Select one of the types above.</Empty>
      )}
    </Page>
  );
}
