/**
 * What answers have cost that ended without a receipt, because they were stopped or broke off. The account's feed tells it; where the
 * connection was lost meanwhile, or the page was, it is asked for until it has been charged.
 */
import { useEffect, useState } from "react";
import { onReconnect } from "../../../client/connection.js";
import { PlaygroundCostDocument } from "../../../client/generated/graphql.js";
import { refetchQuery } from "../../../client/graphql.js";
import { useLive } from "../../../shell/live.js";
import type { Turn } from "./conversation.js";

/** Charges are written down in the background, within seconds. */
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
    const ask = async (tries: number) => {
      for (const id of unknown.split(" ")) {
        const { data } = await refetchQuery(PlaygroundCostDocument, { id });
        const record = data?.me?.usageRecord;
        if (record) setCost(record.restId, record.cost);
      }
      if (!isLeft) askLater(tries + 1);
    };
    const askLater = (tries: number) => {
      const pause = WAITS_MS[tries];
      if (pause !== undefined) timer = setTimeout(() => void ask(tries), pause);
    };
    askLater(0);
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [unknown, returns, setCost]);
}
