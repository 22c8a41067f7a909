/** Toasts. Their code loads on first use, because few visits need it. */
import type { NotificationData } from "@mantine/notifications";
import { loadWithRetry } from "./lazy-with-retry.js";

let requestToasts = () => {};
/** Resolves with the first toast, when the container for toasts has to be rendered. */
export const firstToast = new Promise<void>((resolve) => {
  requestToasts = resolve;
});

export function toast(notification: NotificationData): void {
  requestToasts();
  loadWithRetry(() => import("@mantine/notifications")).then(
    ({ notifications }) => notifications.show(notification),
    () => {},
  );
}
