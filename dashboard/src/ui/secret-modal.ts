/** Properties of a dialog that may show a secret for the only time. */
export interface SecretModalProps {
  readonly withCloseButton: boolean;
  readonly closeOnEscape: boolean;
  readonly closeOnClickOutside: false;
}

/** While the secret is shown, only the button of the dialog closes it: a key press or a stray click would lose the secret. */
export function secretModal(isSecretShown: boolean): SecretModalProps {
  return { withCloseButton: !isSecretShown, closeOnEscape: !isSecretShown, closeOnClickOutside: false };
}
