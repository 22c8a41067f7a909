/** Link that downloads a file of the gateway. It is of the same origin, so that the session of the tab authenticates it. */
import { Button } from "@mantine/core";
import type { ReactNode } from "react";

export function DownloadButton({ path, children }: { readonly path: string; readonly children: ReactNode }) {
  return (
    <Button component="a" href={path} download variant="default">
      {children}
    </Button>
  );
}
