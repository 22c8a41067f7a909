/** What devices and the apps on them are answered. */

import type { UserInfoClaims } from "../../services/accounts/profiles.js";
import type { NewDevice } from "../../services/authorizations/device-authorizations.js";

/** RFC 8628 3.2. */
export function toDeviceCode({ deviceCode, userCode, verificationUri, verificationUriComplete, expiresIn, interval }: NewDevice) {
  return {
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: verificationUri,
    verification_uri_complete: verificationUriComplete,
    expires_in: expiresIn,
    interval,
  };
}

/** OpenID Connect Core 5.1. */
export function toUserInfo({ sub, preferredUsername, picture, profile }: UserInfoClaims) {
  return {
    sub,
    preferred_username: preferredUsername,
    picture,
    ...(profile && { name: profile.name, email: profile.email, email_verified: profile.isEmailVerified }),
  };
}
