/** Instead of what `Table.ScrollContainer` needs (vite.config.ts): tables scroll in `Wide`. */
import type { ReactNode } from "react";

export function ScrollArea({ children }: { readonly children?: ReactNode }): ReactNode {
  return children;
}
