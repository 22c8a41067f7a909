/** Sessions and sign-in, by method and path template. People use the pages; clients of the API do not. */
import type { Operation } from "./operation.js";

const page = (id: string, summary: string): Operation => ({ id, tag: "Authorization", summary, isHidden: true });

export const SESSION_OPERATIONS: Readonly<Record<string, Operation>> = {
  "PATCH /account/profile": {
    id: "updateProfile",
    tag: "Account",
    summary: "Changes how the account and its owner are called. Sessions only.",
    answer: "Profile",
  },
  "GET /account/sessions": {
    id: "listSessions",
    tag: "Account",
    summary: "Where the account is signed in. Sessions only.",
    answer: "Sessions",
  },
  "DELETE /account/sessions": {
    id: "revokeOtherSessions",
    tag: "Account",
    summary: "Ends every session but the one that asks. Sessions only.",
    answer: "EndedSessions",
  },
  "DELETE /account/sessions/{id}": {
    id: "revokeSession",
    tag: "Account",
    summary: "Ends a session, everywhere within a second. Sessions only.",
    answer: "RevokedSession",
  },
  "GET /sign-in": page("showSignIn", "The page to sign in on."),
  "POST /sign-in": page("submitSignIn", "Signs in."),
  "POST /sign-in/github": page("startGitHubSignIn", "Sends the browser to GitHub."),
  "GET /api/auth/callback/github": page("finishGitHubSignIn", "Where GitHub sends it back to."),
  "GET /sign-up": page("showSignUp", "The page to make an account on."),
  "POST /sign-up": page("submitSignUp", "Makes an account and signs in."),
  "POST /sign-out": page("submitSignOut", "Ends the session."),
  "GET /home": page("showHome", "What a person has: balance, keys, recent usage."),
  "GET /home/keys": page("showKeys", "All keys of a person."),
  "GET /home/keys/new": page("showNewKey", "The page to make a key on."),
  "POST /home/keys/new": page("submitNewKey", "Makes a key."),
  "GET /home/keys/made": page("showMadeKey", "Shows a new key, once."),
  "POST /home/keys/{id}/revoke": page("submitRevokeKey", "Revokes a key."),
  "GET /sessions": page("showSessions", "Where the account is signed in."),
  "POST /sessions/revoke-others": page("submitRevokeOtherSessions", "Ends the other sessions."),
  "POST /sessions/{id}/revoke": page("submitRevokeSession", "Ends a session."),
  "GET /password": page("showPassword", "The page to change the password on."),
  "POST /password": page("submitPassword", "Changes the password."),
};
