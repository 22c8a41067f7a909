/** Entries of the navigation and the command palette, in their order. */
import {
  ArrowTrendingUpIcon,
  BanknotesIcon,
  BellAlertIcon,
  BellIcon,
  ChatBubbleLeftRightIcon,
  CubeIcon,
  CubeTransparentIcon,
  FolderIcon,
  HomeIcon,
  KeyIcon,
  PuzzlePieceIcon,
  QueueListIcon,
  ServerStackIcon,
  UserCircleIcon,
} from "@heroicons/react/24/outline";
import type { ComponentType, SVGProps } from "react";

export interface PageEntry {
  /** Relative to the dashboard's path; empty for the overview. */
  readonly path: string;
  readonly label: string;
  readonly icon: ComponentType<SVGProps<SVGSVGElement>>;
  /** More search terms for the palette. */
  readonly words: string;
  readonly isForOperators?: true;
}

export const PAGES: readonly PageEntry[] = [
  { path: "", label: "Overview", icon: HomeIcon, words: "home balance spend feed" },
  {
    path: "playground",
    label: "Playground",
    icon: ChatBubbleLeftRightIcon,
    words: "chat image video speech music transcription embeddings try",
  },
  { path: "keys", label: "Keys", icon: KeyIcon, words: "api key budget revoke" },
  { path: "usage", label: "Usage", icon: ArrowTrendingUpIcon, words: "requests costs receipts csv export" },
  { path: "logs", label: "Logs", icon: QueueListIcon, words: "requests errors failures request id status debug" },
  { path: "credits", label: "Credits", icon: BanknotesIcon, words: "balance ledger top up grants refills payments billing" },
  { path: "models", label: "Models", icon: CubeIcon, words: "catalog prices health calculator" },
  { path: "files", label: "Files", icon: FolderIcon, words: "media upload gallery" },
  { path: "my-models", label: "My models", icon: CubeTransparentIcon, words: "community publish prompt code agent earnings" },
  { path: "apps", label: "Apps", icon: PuzzlePieceIcon, words: "connected oauth device redirect integrations" },
  { path: "alerts", label: "Alerts", icon: BellIcon, words: "unusual spend budget unused keys silence notifications" },
  { path: "webhooks", label: "Webhooks", icon: BellAlertIcon, words: "endpoints deliveries secret" },
  { path: "account", label: "Account", icon: UserCircleIcon, words: "profile password sessions export delete" },
  {
    path: "operator",
    label: "Operator",
    icon: ServerStackIcon,
    words: "accounts grants tiers health spend audit log admin",
    isForOperators: true,
  },
];

export const DASHBOARD = "/dashboard";

export function addressOf(path: string): string {
  return path === "" ? DASHBOARD : `${DASHBOARD}/${path}`;
}

/** Address of a model's page. It has the REST ID as requests use it, slashes included. */
export function addressOfModel(restId: string): string {
  return addressOf(`models/${restId.split("/").map(encodeURIComponent).join("/")}`);
}
