/** Account page: profile, sessions, and export or deletion of data. */
import { Tabs } from "@mantine/core";
import { useNavigate, useParams } from "react-router";
import { AccountDataDocument, AccountProfileDocument, AccountSessionsDocument } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { NotFound } from "../../shell/errors.js";
import { addressOf } from "../../shell/pages.js";
import { Page } from "../../ui/page.js";
import { Data } from "./data.js";
import { Profile } from "./profile.js";
import { Sessions } from "./sessions.js";

export function start({ params: { part } }: { readonly params: Readonly<Record<string, string | undefined>> }): void {
  if (part === "sessions") prefetch(AccountSessionsDocument, {});
  else if (part === "data") prefetch(AccountDataDocument, {});
  else prefetch(AccountProfileDocument, {});
}

const PARTS = [
  { part: undefined, label: "Profile", title: "Account", View: Profile },
  { part: "sessions", label: "Sessions", title: "Sessions", View: Sessions },
  { part: "data", label: "Your data", title: "Your data", View: Data },
] as const;

export function Component() {
  const { part } = useParams();
  const navigate = useNavigate();
  const shown = PARTS.find((each) => each.part === part);
  if (!shown) return <NotFound />;
  const { View } = shown;
  return (
    <Page title="Account" tabTitle={shown.title}>
      <Tabs
        value={part ?? "profile"}
        onChange={(to) => navigate(to === "profile" ? addressOf("account") : `${addressOf("account")}/${to}`)}
        keepMounted={false}
      >
        <Tabs.List mb="lg">
          {PARTS.map(({ part: each = "profile", label }) => (
            <Tabs.Tab key={each} value={each}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={part ?? "profile"}>
          <View />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
