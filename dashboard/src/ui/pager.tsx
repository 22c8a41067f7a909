/** Buttons below a list: first page and next page. */
import { Button, Group } from "@mantine/core";

export interface PagerProps {
  /** Cursor of the current page, null on the first. */
  readonly after: string | null;
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null } | undefined;
  readonly onMove: (after: string | null) => void;
  readonly first?: string;
  /** Label of the button to the next page, such as "Older keys". */
  readonly next: string;
}

export function Pager({ after, pageInfo, onMove, first = "Newest", next }: PagerProps) {
  const end = pageInfo?.hasNextPage ? pageInfo.endCursor : null;
  if (after === null && end === null) return null;
  // The page before stays visible until the next one is here: its end is where the next one begins.
  const isMoving = end !== null && end === after;
  return (
    <Group justify="flex-end">
      {after !== null && (
        <Button variant="default" size="xs" onClick={() => onMove(null)}>
          {first}
        </Button>
      )}
      {end !== null && (
        <Button variant="default" size="xs" loading={isMoving} onClick={() => onMove(end)}>
          {next}
        </Button>
      )}
    </Group>
  );
}
