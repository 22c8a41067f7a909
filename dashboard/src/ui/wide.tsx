/** Scrolls content that is wider than a phone. It is focusable, so that a keyboard can scroll it. */
import { Box, Table } from "@mantine/core";
import type { ReactNode } from "react";

export function Wide({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <Box component="section" className="wide" tabIndex={0} aria-label={label}>
      {children}
    </Box>
  );
}

export interface WideTableProps {
  readonly label: string;
  /**
   * Headings of columns, empty above buttons. Amounts are aligned to the right. A phone leaves out columns that are `wide`, which then have
   * cells with `visibleFrom="sm"`.
   */
  readonly columns: readonly (string | { readonly amount: string } | { readonly wide: string })[];
  readonly highlightOnHover?: boolean;
  /** For example the number of rows that are not shown. */
  readonly below?: ReactNode;
  readonly children: ReactNode;
}

export function WideTable({ label, columns, highlightOnHover = false, below, children }: WideTableProps) {
  return (
    <Wide label={label}>
      <Table
        highlightOnHover={highlightOnHover}
        verticalSpacing="xs"
        className={columns.some((column) => typeof column === "object" && "wide" in column) ? "slim" : undefined}
      >
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) =>
              typeof column === "string" ? (
                <Table.Th key={column}>{column}</Table.Th>
              ) : "wide" in column ? (
                <Table.Th key={column.wide} visibleFrom="sm">
                  {column.wide}
                </Table.Th>
              ) : (
                <Table.Th key={column.amount} ta="right">
                  {column.amount}
                </Table.Th>
              ),
            )}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
      {below}
    </Wide>
  );
}
