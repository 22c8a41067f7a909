/**
 * Costs of answers without a receipt, because they were stopped or interrupted. They come from the account's feed. After a lost connection or
 * a reload they are polled until the charge is stored.
 */
import { useEffect, useState } from "react";
import { onReconnect } from "../../../client/connection.js";
import { PlaygroundCostDocument } from "../../../client/generated/graphql.js";
import { refetchQuery } from "../../../client/graphql.js";
import { useLive } from "../../../shell/live.js";
import type { Turn } from "./conversation.js";

/** Delays between polls. Charges are stored in the background, within seconds. */
const WAITS_MS = [500, 1_000, 2_000, 4_000, 8_000, 16_000];

export function useCosts(turns: readonly Turn[], setCost: (generationId: string, cost: string) => void): void {
  const { feed } = useLive();
  const [returns, setReturns] = useState(0);
  useEffect(() => onReconnect(() => setReturns((before) => before + 1)), []);
  useEffect(() => {
    for (const { restId, cost } of feed) setCost(restId, cost);
  }, [feed, setCost, turns]);

  const unknown = turns
    .flatMap(({ answers }) => answers)
    .flatMap((answer) => (answer?.generationId && answer.cost === null && answer.state !== "running" ? [answer.generationId] : []))
    .join(" ");
  useEffect(() => {
    if (unknown === "") return;
    let isLeft = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async (attempt: number) => {
      for (const id of unknown.split(" ")) {
        const { data } = await refetchQuery(PlaygroundCostDocument, { id });
        const record = data?.me?.usageRecord;
        if (record) setCost(record.restId, record.cost);
      }
      if (!isLeft) schedule(attempt + 1);
    };
    const schedule = (attempt: number) => {
      const pause = WAITS_MS[attempt];
      if (pause !== undefined) timer = setTimeout(() => void poll(attempt), pause);
    };
    schedule(0);
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [unknown, returns, setCost]);
}
