/** GitHub, as far as an OAuth app sees it: its addresses, its JSON, and its habit of answering errors with 200. */
import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface GitHubUser {
  readonly id: number;
  readonly login: string;
  readonly name?: string | null;
  readonly emails: readonly { readonly email: string; readonly primary: boolean; readonly verified: boolean }[];
}

export interface FakeGitHub {
  readonly url: string;
  readonly settings: { readonly clientId: string; readonly clientSecret: string; readonly webUrl: string; readonly apiUrl: string };
  /** The user who is signed in to GitHub in the browser. */
  user: GitHubUser;
  /** Replaces the next answers of the API. */
  failure: { readonly status: number; readonly body: string } | null;
  /** Lets the app know who it is: where the browser is sent back to. */
  authorize(address: string): string;
  close(): Promise<void>;
}

interface Grant {
  readonly challenge: string;
  readonly redirectUri: string;
  readonly user: GitHubUser;
}

const CLIENT = { clientId: "Iv1.test", clientSecret: "github-client-secret" };

export async function startFakeGitHub(): Promise<FakeGitHub> {
  const codes = new Map<string, Grant>();
  const tokens = new Map<string, GitHubUser>();
  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    if (github.failure) return send(res, github.failure.status, github.failure.body);
    if (req.url === "/login/oauth/access_token") return send(res, 200, exchange(new URLSearchParams(await bodyOf(req)), codes, tokens));
    const user = tokens.get(/^Bearer (.+)$/.exec(req.headers.authorization ?? "")?.[1] ?? "");
    if (!user || !req.headers["user-agent"]) return send(res, 401, { message: "Bad credentials" });
    const { emails, ...shown } = user;
    if (req.url === "/user")
      return send(res, 200, { name: null, avatar_url: `https://avatars.example.com/u/${user.id}`, email: null, ...shown });
    if (req.url === "/user/emails") return send(res, 200, emails);
    return send(res, 404, { message: "Not Found" });
  };
  const server = createServer((req, res) => void answer(req, res));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const github: FakeGitHub = {
    url,
    settings: { ...CLIENT, webUrl: url, apiUrl: url },
    user: { id: 1, login: "nobody", emails: [] },
    failure: null,
    authorize: (address) => {
      const asked = new URL(address).searchParams;
      const code = randomBytes(10).toString("hex");
      codes.set(code, {
        challenge: asked.get("code_challenge") ?? "",
        redirectUri: asked.get("redirect_uri") ?? "",
        user: github.user,
      });
      return `${asked.get("redirect_uri")}?code=${code}&state=${asked.get("state")}`;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return github;
}

function exchange(form: URLSearchParams, codes: Map<string, Grant>, tokens: Map<string, GitHubUser>): object {
  if (form.get("client_id") !== CLIENT.clientId || form.get("client_secret") !== CLIENT.clientSecret) {
    return { error: "incorrect_client_credentials", error_description: "The client_id and/or client_secret passed are incorrect." };
  }
  const code = form.get("code") ?? "";
  const grant = codes.get(code);
  codes.delete(code);
  const challenge = createHash("sha256")
    .update(form.get("code_verifier") ?? "")
    .digest("base64url");
  if (!grant || grant.redirectUri !== form.get("redirect_uri") || grant.challenge !== challenge) {
    return { error: "bad_verification_code", error_description: "The code passed is incorrect or expired." };
  }
  const token = `gho_${randomBytes(18).toString("hex")}`;
  tokens.set(token, grant.user);
  return { access_token: token, token_type: "bearer", scope: "read:user,user:email" };
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function send(res: ServerResponse, status: number, body: object | string): void {
  res.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  res.end(typeof body === "string" ? body : JSON.stringify(body));
}
