/** Sessions and sign-in, with what only they use. */
import type { Logger } from "pino";
import type { Addresses } from "../../lib/base-url.js";
import type { Clock } from "../../lib/clock.js";
import type { Infrastructure } from "../composition/infrastructure.js";
import type { PlatformSettings } from "../composition/platform-settings.js";
import { GitHubSignIn } from "./github-sign-in.js";
import { Passwords } from "./passwords.js";
import { SessionCookie } from "./session-cookie.js";
import { SessionDirectory } from "./session-directory.js";
import { Sessions } from "./sessions.js";
import { SignIn } from "./sign-in.js";
import { loadSignInLibrary, type SignInLibrary } from "./sign-in-library.js";
import { SignInLimits } from "./sign-in-limits.js";

export interface SessionServices {
  readonly sessions: Sessions;
  readonly sessionDirectory: SessionDirectory;
  readonly signIn: SignIn;
  readonly gitHubSignIn: GitHubSignIn;
  readonly sessionCookie: SessionCookie;
}

export function createSessionServices(
  { database, events, counters, deriveSecret }: Pick<Infrastructure, "database" | "events" | "counters" | "deriveSecret">,
  settings: Pick<PlatformSettings, "github" | "passwordCost" | "sessionHost" | "signInAttemptsPerMinute" | "signUp">,
  clock: Clock,
  log: Logger,
  addresses: () => Addresses,
): SessionServices {
  const sessionCookie = new SessionCookie(() => {
    const { baseUrl, authUrl } = addresses();
    return settings.sessionHost === null ? [baseUrl, authUrl] : [authUrl];
  }, settings.sessionHost);
  const directory = new SessionDirectory(database, deriveSecret("session tokens"), clock, events);
  const sessions = new Sessions(database, directory, sessionCookie, events, clock);
  const passwords = new Passwords(settings.passwordCost);
  const limits = new SignInLimits(counters, settings.signInAttemptsPerMinute);
  const isSignUpOpen = settings.signUp === "open";
  let loaded: Promise<SignInLibrary> | null = null;
  const library = () => {
    loaded ??= loadSignInLibrary({
      database,
      passwords,
      clock,
      log,
      secret: deriveSecret("sign-in"),
      authUrl: addresses().authUrl,
      github: settings.github,
      isSignUpOpen,
      hashToken: (token) => directory.hash(token),
    }).catch((error: unknown) => {
      loaded = null;
      throw error;
    });
    return loaded;
  };
  const signIn = new SignIn({ database, sessions, directory, cookie: sessionCookie, passwords, limits, isSignUpOpen, library });
  const gitHubSignIn = new GitHubSignIn({ signIn, limits, library, webUrl: settings.github?.webUrl ?? null });
  return { sessions, sessionDirectory: directory, signIn, gitHubSignIn, sessionCookie };
}
