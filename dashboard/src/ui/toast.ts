/** What happened elsewhere, or was done, said in the corner of the page. Few visits need it, so its code comes when it is first used. */
import type { NotificationData } from "@mantine/notifications";
import { loadLater } from "./later.js";

export function toast(said: NotificationData): void {
  loadLater(() => import("@mantine/notifications")).then(
    ({ notifications }) => notifications.show(said),
    () => {},
  );
}
