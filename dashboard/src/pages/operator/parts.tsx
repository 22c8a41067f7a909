/** What the pages for operators have in common. */
import { Button, Group } from "@mantine/core";
import { Link, useLocation } from "react-router";
import { useLive } from "../../shell/live.js";
import { addressOf } from "../../shell/pages.js";
import { Page, type PageProps } from "../../ui/page.js";
import { Empty } from "../../ui/states.js";

export const OPERATOR = addressOf("operator");
export const ACCOUNTS = `${OPERATOR}/accounts`;
const SECTIONS = [
  { to: OPERATOR, label: "Gateway" },
  { to: ACCOUNTS, label: "Accounts" },
];

/** Says so to whoever is no operator; the gateway would refuse them all the same. */
export function OperatorPage({ children, ...page }: PageProps) {
  const { me } = useLive();
  const { pathname } = useLocation();
  if (me?.isOperator === false) {
    return (
      <Page title="For operators">
        <Empty title="Only operators of this gateway see this page.">Whoever runs the gateway says who they are.</Empty>
      </Page>
    );
  }
  return (
    <Page {...page}>
      <nav aria-label="Parts of this page">
        <Group gap={6}>
          {SECTIONS.map(({ to, label }) => {
            const isHere = to === OPERATOR ? !pathname.startsWith(ACCOUNTS) : pathname.startsWith(ACCOUNTS);
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
