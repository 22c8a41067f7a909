import { Button, Group } from "@mantine/core";
import { Link, useLocation } from "react-router";
import { useLive } from "../../shell/live.js";
import { addressOf } from "../../shell/pages.js";
import { Page, type PageProps } from "../../ui/page.js";
import { Empty } from "../../ui/states.js";

export const OPERATOR = addressOf("operator");
export const ACCOUNTS = `${OPERATOR}/accounts`;
export const ROUTES = `${OPERATOR}/routes`;
export const SPEND = `${OPERATOR}/spend`;
export const SALES = `${OPERATOR}/sales`;
export const EARNINGS = `${OPERATOR}/earnings`;
export const AUDIT = `${OPERATOR}/audit`;
export const LOGS = `${OPERATOR}/logs`;
/** Limit of the gateway for reasons of an operator's act. */
export const REASON_CHARS_MAX = 500;
const SECTIONS = [
  { to: OPERATOR, label: "Gateway" },
  { to: ACCOUNTS, label: "Accounts" },
  { to: LOGS, label: "Logs" },
  { to: ROUTES, label: "Routes" },
  { to: SPEND, label: "Spend" },
  { to: SALES, label: "Sales" },
  { to: EARNINGS, label: "Earnings" },
  { to: AUDIT, label: "Audit log" },
];

export function accountAddress(id: string): string {
  return `${ACCOUNTS}/${encodeURIComponent(id)}`;
}

/** Address of the requests of an account, with further filters of the logs. */
export function logsOf(accountId: string, filters: Readonly<Record<string, string>> = {}): string {
  return `${LOGS}?${new URLSearchParams({ account: accountId, ...filters })}`;
}

/** Frame of the operator pages. Other accounts see a notice; the gateway rejects their queries anyway. */
export function OperatorPage({ children, ...page }: PageProps) {
  const { me } = useLive();
  const { pathname } = useLocation();
  if (me?.isOperator === false) {
    return (
      <Page title="Operators only">
        <Empty title="You do not have access to this page">Only operators of this gateway can see it.</Empty>
      </Page>
    );
  }
  return (
    <Page {...page}>
      <nav aria-label="Operator pages">
        <Group gap={6}>
          {SECTIONS.map(({ to, label }) => {
            const isHere = to === OPERATOR ? pathname === OPERATOR : pathname.startsWith(to);
            return (
              <Button
                key={to}
                component={Link}
                to={to}
                size="compact-md"
                variant={isHere ? "light" : "subtle"}
                {...(isHere && { "aria-current": "page" as const })}
              >
                {label}
              </Button>
            );
          })}
        </Group>
      </nav>
      {children}
    </Page>
  );
}
