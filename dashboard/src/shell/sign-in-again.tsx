/** The session is over: what is typed stays, and signing in happens in another window. */
import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useEffect } from "react";
import { ShellDocument } from "../client/generated/graphql.js";
import { refetchQuery } from "../client/graphql.js";
import { BASE } from "../client/place.js";
import { DASHBOARD } from "./pages.js";

export default function SignInAgain() {
  useEffect(() => {
    const look = () => void refetchQuery(ShellDocument, {});
    window.addEventListener("focus", look);
    return () => window.removeEventListener("focus", look);
  }, []);
  return (
    <Modal opened onClose={() => {}} withCloseButton={false} closeOnEscape={false} title="Your session has ended" centered>
      <Stack>
        <Text>Sign in again in another window. Then come back here: what you have typed is still there.</Text>
        <Group justify="flex-end">
          <Button
            component="a"
            href={`${BASE}/sign-in?return_to=${encodeURIComponent(`${BASE}${DASHBOARD}/signed-in`)}`}
            target="_blank"
            rel="opener"
          >
            Sign in
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
