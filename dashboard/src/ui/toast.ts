/** What happened elsewhere, or was done, said in the corner of the page. Few visits need it, so its code comes when it is first used. */
import type { NotificationData } from "@mantine/notifications";
import { loadWithRetry } from "./lazy-with-retry.js";

let beginToasts = () => {};
/** Then there is need of the corner that they are shown in. */
export const firstToast = new Promise<void>((resolve) => {
  beginToasts = resolve;
});

export function toast(said: NotificationData): void {
  beginToasts();
  loadWithRetry(() => import("@mantine/notifications")).then(
    ({ notifications }) => notifications.show(said),
    () => {},
  );
}
