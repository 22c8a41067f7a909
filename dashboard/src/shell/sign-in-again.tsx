/** Dialog for an ended session. Signing in happens in another window, so that forms on this page keep their input. */
import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useEffect } from "react";
import { ShellDocument } from "../client/generated/graphql.js";
import { refetchQuery } from "../client/graphql.js";
import { BASE } from "../client/place.js";
import { DASHBOARD } from "./pages.js";

export default function SignInAgain() {
  useEffect(() => {
    const check = () => void refetchQuery(ShellDocument, {});
    window.addEventListener("focus", check);
    return () => window.removeEventListener("focus", check);
  }, []);
  return (
    <Modal opened onClose={() => {}} withCloseButton={false} closeOnEscape={false} title="Your session has ended" centered>
      <Stack>
        <Text>Sign in again in a new window, then return to this one. Your input is kept.</Text>
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
