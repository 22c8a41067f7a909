/**
 * What the gateway tells by itself, once for the whole dashboard: the balance, each generation that was charged, a balance that fell below
 * its threshold. Fifty generations a second are shown four times a second.
 */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import { useSubscription } from "urql";
import { useAnswer } from "../client/answer.js";
import { onReconnect, useConnection } from "../client/connection.js";
import {
  type ApiKeyChangeKind,
  type FeedRecordFragment,
  ShellBalanceChangedDocument,
  ShellBalanceLowDocument,
  ShellDocument,
  ShellKeyChangedDocument,
  type ShellQuery,
  ShellUsageRecordedDocument,
} from "../client/generated/graphql.js";
import { formatCredits } from "../ui/credits.js";
import { toast } from "../ui/toast.js";

type Me = NonNullable<ShellQuery["me"]>;
export type Balance = NonNullable<Me["balance"]>;

interface Live {
  readonly me: Me | null;
  /** The newest that is known. */
  readonly balance: Balance | null;
  /** What was charged since the dashboard was opened, newest first, FEED_MAX at most. */
  readonly feed: readonly FeedRecordFragment[];
  /** Is another number after each change of a key: whoever shows keys asks anew. */
  readonly keysChangedAt: number;
  /** Is another number after each pause in which something was charged: whoever shows sums asks anew. */
  readonly chargedAt: number;
}

const FEED_MAX = 200;
const FEED_MS = 250;
/** Sums are asked for anew as soon after a charge, and at most this often. */
const SUMS_AFTER_MS = 500;
const SUMS_MS = 5_000;

/** While the gateway is away it is asked whether it is back: soon at first, and seldom later. */
const LOOK_MS = 1_500;
const LOOK_MS_MAX = 15_000;

const ENDS: ReadonlyMap<ApiKeyChangeKind, string> = new Map([
  ["REVOKED", "was revoked"],
  ["EXPIRED", "has expired"],
]);

/** Keys that were revoked in this very tab, by their REST ids: nobody need be told. */
const endedHere = new Set<string>();
export const noteRevokedHere = (apiKeyId: string) => void endedHere.add(apiKeyId);

const LiveContext = createContext<Live>({ me: null, balance: null, feed: [], keysChangedAt: 0, chargedAt: 0 });
export const useLive = () => useContext(LiveContext);

export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const { data, refetch } = useAnswer({ query: ShellDocument });
  const [balance, setBalance] = useState<Balance | null>(null);
  const [feed, setFeed] = useState<readonly FeedRecordFragment[]>([]);
  const [chargedAt, setChargedAt] = useState(0);
  const [keysChangedAt, setKeysChangedAt] = useState(0);
  const waiting = useRef<FeedRecordFragment[]>([]);
  const newestBalance = useRef<Balance | null>(null);
  const isScheduled = useRef(false);
  const areSumsScheduled = useRef(false);
  const summedAt = useRef(0);

  /** All that was told meanwhile is shown at once. */
  const showSoon = () => {
    if (isScheduled.current) return;
    isScheduled.current = true;
    setTimeout(() => {
      isScheduled.current = false;
      const arrived = waiting.current.splice(0).reverse();
      if (arrived.length > 0) setFeed((before) => [...arrived, ...before].slice(0, FEED_MAX));
      setBalance(newestBalance.current);
    }, FEED_MS);
  };
  // What was asked for is newer than what was told before.
  useEffect(() => {
    newestBalance.current = data?.me?.balance ?? null;
    setBalance(newestBalance.current);
  }, [data]);
  useEffect(
    () =>
      onReconnect(() => {
        refetch();
        setChargedAt(Date.now());
        setKeysChangedAt(Date.now());
      }),
    [refetch],
  );
  const isAway = useConnection() === "away";
  useEffect(() => {
    if (!isAway) return;
    let timer: ReturnType<typeof setTimeout>;
    const lookIn = (waitMs: number) => {
      timer = setTimeout(
        () => {
          refetch();
          lookIn(Math.min(waitMs * 1.5, LOOK_MS_MAX));
        },
        waitMs * (0.5 + Math.random()),
      );
    };
    lookIn(LOOK_MS);
    return () => clearTimeout(timer);
  }, [isAway, refetch]);

  useSubscription({ query: ShellBalanceChangedDocument }, (_, told) => {
    newestBalance.current = told.balanceChanged.account.balance;
    showSoon();
    return told;
  });
  useSubscription({ query: ShellUsageRecordedDocument }, (_, told) => {
    waiting.current.push(told.usageRecorded);
    showSoon();
    if (!areSumsScheduled.current) {
      areSumsScheduled.current = true;
      setTimeout(
        () => {
          areSumsScheduled.current = false;
          summedAt.current = Date.now();
          setChargedAt(summedAt.current);
        },
        Math.max(SUMS_AFTER_MS, summedAt.current + SUMS_MS - Date.now()),
      );
    }
    return told;
  });
  useSubscription({ query: ShellBalanceLowDocument }, (_, told) => {
    const { balance: left, threshold } = told.balanceLow;
    toast({
      color: "orange",
      title: "Your balance is low",
      message: `${formatCredits(left)} credits are left, less than the ${formatCredits(threshold)} that you want to be warned at.`,
      autoClose: false,
    });
    return told;
  });

  useSubscription({ query: ShellKeyChangedDocument }, (_, told) => {
    const { kind, apiKeyId, apiKey } = told.apiKeyChanged;
    setKeysChangedAt(Date.now());
    const happened = ENDS.get(kind);
    if (happened !== undefined && !endedHere.delete(apiKeyId)) {
      toast({
        color: "red",
        title: `A key ${happened}`,
        message: `${apiKey?.name ?? "A key"}: whatever shows it is refused from now on.`,
        autoClose: 10_000,
      });
    }
    return told;
  });

  // Each event draws this component anew, and those that use it only when something of it is another.
  const me = data?.me ?? null;
  const live = useMemo(() => ({ me, balance, feed, keysChangedAt, chargedAt }), [me, balance, feed, keysChangedAt, chargedAt]);
  return <LiveContext value={live}>{children}</LiveContext>;
}
