/** What is wider than a phone: it scrolls by itself, and is reached by the keyboard for that. */
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
  /** What each column has, which is nothing above buttons; amounts stand at the right. */
  readonly columns: readonly (string | { readonly amount: string })[];
  readonly highlightOnHover?: boolean;
  /** Such as how many rows are not shown. */
  readonly below?: ReactNode;
  /** Its rows. */
  readonly children: ReactNode;
}

export function WideTable({ label, columns, highlightOnHover = false, below, children }: WideTableProps) {
  return (
    <Wide label={label}>
      <Table highlightOnHover={highlightOnHover} verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) =>
              typeof column === "string" ? (
                <Table.Th key={column}>{column}</Table.Th>
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
