/**
 * Live data of the whole dashboard, from one set of subscriptions: the balance, every charge, changes of keys and low-balance alerts.
 * Updates are batched, so that even fifty charges a second render only four times a second.
 */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import { useSubscription } from "urql";
import { useAnswer } from "../client/answer.js";
import { onReconnect, useIsBehind } from "../client/connection.js";
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
import { isUnreachable } from "../client/graphql.js";
import { formatCredits } from "../ui/credits.js";
import { toast } from "../ui/toast.js";

type Me = NonNullable<ShellQuery["me"]>;
export type Balance = NonNullable<Me["balance"]>;
type TopUp = NonNullable<ShellQuery["topUp"]>;

interface Live {
  readonly me: Me | null;
  readonly balance: Balance | null;
  /** How to get credits. Null when the operator does not say. */
  readonly topUp: TopUp | null;
  /** Charges since the dashboard was opened, newest first, FEED_MAX at most. */
  readonly feed: readonly FeedRecordFragment[];
  /** Time of the last change of a key, 0 before the first. Pages that show keys refetch when it changes. */
  readonly keysChangedAt: number;
  /** Time of the last batch of charges, 0 before the first. Pages that show totals refetch when it changes. */
  readonly chargedAt: number;
}

const FEED_MAX = 200;
const FEED_MS = 250;
/** Delay between a charge and the refetch of totals, and the shortest time between two refetches. */
const TOTALS_DELAY_MS = 500;
const TOTALS_INTERVAL_MS = 5_000;

/** Delay between polls while the gateway is unreachable or live events are missing. After POLLS_FAST, each is 1.5 times the one before. */
const POLL_MS = 1_500;
const POLLS_FAST = 60;
const POLL_MS_MAX = 15_000;

const KEY_END_TITLES: ReadonlyMap<ApiKeyChangeKind, string> = new Map([
  ["REVOKED", "Key revoked"],
  ["EXPIRED", "Key expired"],
]);

/** REST ids of keys that were revoked in this tab, which shows no toast for them. */
const revokedHere = new Set<string>();
export const noteRevokedHere = (apiKeyId: string) => void revokedHere.add(apiKeyId);

const LiveContext = createContext<Live>({ me: null, balance: null, topUp: null, feed: [], keysChangedAt: 0, chargedAt: 0 });
export const useLive = () => useContext(LiveContext);

export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const { data: answered, error, refetch } = useAnswer({ query: ShellDocument });
  // A request without an answer says nothing about the account: the figures before it stay.
  const known = useRef<ShellQuery>(undefined);
  if (answered || !error || !isUnreachable(error)) known.current = answered;
  const data = known.current;
  const [balance, setBalance] = useState<Balance | null>(data?.me?.balance ?? null);
  const [feed, setFeed] = useState<readonly FeedRecordFragment[]>([]);
  const [chargedAt, setChargedAt] = useState(0);
  const [keysChangedAt, setKeysChangedAt] = useState(0);
  const waiting = useRef<FeedRecordFragment[]>([]);
  const newestBalance = useRef<Balance | null>(null);
  const isScheduled = useRef(false);
  const areTotalsScheduled = useRef(false);
  const totalsAt = useRef(0);

  /** Renders all events of the last FEED_MS together. */
  const scheduleRender = () => {
    if (isScheduled.current) return;
    isScheduled.current = true;
    setTimeout(() => {
      isScheduled.current = false;
      const arrived = waiting.current.splice(0).reverse();
      if (arrived.length > 0) setFeed((before) => [...arrived, ...before].slice(0, FEED_MAX));
      setBalance(newestBalance.current);
    }, FEED_MS);
  };
  // A fetched balance is newer than all events before it.
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
  const isBehind = useIsBehind();
  useEffect(() => {
    if (!isBehind) return;
    let timer: ReturnType<typeof setTimeout>;
    const poll = (count: number) => {
      const waitMs = Math.min(POLL_MS * 1.5 ** Math.max(0, count - POLLS_FAST), POLL_MS_MAX);
      timer = setTimeout(
        () => {
          refetch();
          poll(count + 1);
        },
        waitMs * (0.5 + Math.random()),
      );
    };
    poll(0);
    return () => clearTimeout(timer);
  }, [isBehind, refetch]);

  useSubscription({ query: ShellBalanceChangedDocument }, (_, event) => {
    newestBalance.current = event.balanceChanged.account.balance;
    scheduleRender();
    return event;
  });
  useSubscription({ query: ShellUsageRecordedDocument }, (_, event) => {
    waiting.current.push(event.usageRecorded);
    scheduleRender();
    if (!areTotalsScheduled.current) {
      areTotalsScheduled.current = true;
      setTimeout(
        () => {
          areTotalsScheduled.current = false;
          totalsAt.current = Date.now();
          setChargedAt(totalsAt.current);
        },
        Math.max(TOTALS_DELAY_MS, totalsAt.current + TOTALS_INTERVAL_MS - Date.now()),
      );
    }
    return event;
  });
  useSubscription({ query: ShellBalanceLowDocument }, (_, event) => {
    const { balance: left, threshold } = event.balanceLow;
    toast({
      color: "orange",
      title: "Low balance",
      message: `${formatCredits(left)} credits left, below your alert threshold of ${formatCredits(threshold)}.`,
      autoClose: false,
    });
    return event;
  });

  useSubscription({ query: ShellKeyChangedDocument }, (_, event) => {
    const { kind, apiKeyId, apiKey } = event.apiKeyChanged;
    setKeysChangedAt(Date.now());
    const title = KEY_END_TITLES.get(kind);
    if (title !== undefined && !revokedHere.delete(apiKeyId)) {
      toast({ color: "red", title, message: `Requests with ${apiKey?.name ?? "this key"} are now rejected.`, autoClose: 10_000 });
    }
    return event;
  });

  // Every event renders this component. The memo spares its consumers when no value has changed.
  const me = data?.me ?? null;
  const topUp = data?.topUp ?? null;
  const live = useMemo(
    () => ({ me, balance, topUp, feed, keysChangedAt, chargedAt }),
    [me, balance, topUp, feed, keysChangedAt, chargedAt],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}
