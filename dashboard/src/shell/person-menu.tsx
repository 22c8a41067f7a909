/** Account menu in the header. */
import { Avatar, Menu, UnstyledButton } from "@mantine/core";
import { Link } from "react-router";
import { useMutation } from "urql";
import { ShellSignOutDocument } from "../client/generated/graphql.js";
import { BASE, GATEWAY_URL, HAS_GRAPHIQL } from "../client/place.js";
import { addressOf } from "./pages.js";

export default function PersonMenu({
  name,
  handle,
  image,
}: {
  readonly name: string;
  readonly handle: string;
  readonly image: string | null;
}) {
  const [, end] = useMutation(ShellSignOutDocument);
  const signOut = async () => {
    const { error } = await end({ input: { isEverywhere: false } });
    if (!error) location.assign(`${BASE}/sign-in`);
  };
  return (
    <Menu position="bottom-end" width={220} defaultOpened>
      <Menu.Target>
        <UnstyledButton ref={focus} aria-label={`Account menu of ${name}`}>
          <Avatar size={30} src={image} alt="" />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label className="any-wrap">
          <bdi>{handle}</bdi>
        </Menu.Label>
        <Menu.Item component={Link} to={addressOf("account")}>
          Account
        </Menu.Item>
        <Menu.Item component={Link} to={`${addressOf("account")}/sessions`}>
          Sessions
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item component="a" href={`${GATEWAY_URL}/docs`} target="_blank" rel="noopener">
          API reference
        </Menu.Item>
        {HAS_GRAPHIQL && (
          <Menu.Item component="a" href={`${GATEWAY_URL}/graphql`} target="_blank" rel="noopener">
            GraphiQL
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item onClick={signOut}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** Takes the focus over from the placeholder button that it replaces, so that Escape returns there. */
function focus(element: HTMLElement | null): void {
  element?.focus();
}
