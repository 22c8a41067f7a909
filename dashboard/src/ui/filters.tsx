/** Filters above a list. On a phone all but the first are folded behind a button. */
import { FunnelIcon } from "@heroicons/react/24/outline";
import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useId } from "react";

export interface FiltersProps {
  /** Search field, which is always shown. */
  readonly search: ReactNode;
  /** Number of filters in use, the search aside. */
  readonly count: number;
  readonly children: ReactNode;
}

export function Filters({ search, count, children }: FiltersProps) {
  const [isOpen, { toggle }] = useDisclosure();
  const id = useId();
  return (
    <search className="filters">
      {search}
      <Button
        className="filters-button"
        variant="default"
        onClick={toggle}
        aria-expanded={isOpen}
        aria-controls={id}
        leftSection={<FunnelIcon width={16} aria-hidden />}
      >
        {count === 0 ? "Filters" : `Filters (${count})`}
      </Button>
      <div id={id} className="filters-rest" data-open={isOpen}>
        {children}
      </div>
    </search>
  );
}
